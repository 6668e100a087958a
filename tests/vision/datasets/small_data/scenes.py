"""Faces, scenes and sentences about pictures."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from vision.datasets.small_data.writing import Case, builder, mat, picture, text

# Faces


@builder
def celeba(root: Path) -> Iterator[Case]:
    base = root / "celeba"
    for number in range(6):
        picture(base / "img_align_celeba" / f"{number:06d}.jpg", number)

    def table(name: str, head: str, rows: list[list[int]]) -> None:
        lines = [f"{n:06d}.jpg  {' '.join(map(str, row))}\n" for n, row in enumerate(rows)]
        text(base / name, head + "".join(lines))

    table("list_eval_partition.txt", "", [[0], [1], [2], [0], [1], [2]])
    table("identity_CelebA.txt", "", [[n + 5] for n in range(6)])
    table("list_attr_celeba.txt", "4\nBald Young\n", [[-1, 1], [1, 1], [1, -1]] * 2)
    table("list_bbox_celeba.txt", "4\nname x y w h\n", [[n, 2, 30, 40] for n in range(6)])
    table("list_landmarks_align_celeba.txt", "4\na b\n", [[n] * 10 for n in range(6)])
    yield Case("CelebA", {}, [(0, [0, 1]), (3, [0, 1])])
    yield Case("CelebA", {"split": "valid", "target_type": "identity"}, [(1, 6), (4, 9)])
    everything = {"split": "all", "target_type": ["bbox", "identity", "landmarks"]}
    expected = [(n, [[n, 2, 30, 40], n + 5, [n] * 10]) for n in range(6)]
    yield Case("CelebA", everything, expected)
    yield Case("CelebA", {"split": "test", "target_type": []}, [(2, None), (5, None)])


@builder
def lfw(root: Path) -> Iterator[Case]:
    base = root / "lfw-py"
    number = 0
    for name, count in (("Ann", 2), ("Bob", 1)):
        for no in range(1, count + 1):
            picture(base / "lfw_funneled" / name / f"{name}_{no:04d}.jpg", number)
            number += 1
    text(base / "lfw-funneled.tgz", "")
    text(base / "lfw-names.txt", "Ann\t2\nBob\t1\n")
    text(base / "people.txt", "2\n1\nBob\t1\n1\nAnn\t2\n")
    text(base / "peopleDevTrain.txt", "2\nAnn\t2\nBob\t1\n")
    text(base / "pairs.txt", "1\t1\nAnn\t1\t2\nAnn\t2\tBob\t1\n")
    text(base / "pairsDevTest.txt", "1\nAnn\t2\t1\nBob\t1\tAnn\t1\n")
    yield Case("LFWPeople", {}, [(2, 1), (0, 0), (1, 0)])
    yield Case("LFWPeople", {"split": "train"}, [(0, 0), (1, 0), (2, 1)])
    yield Case("LFWPairs", {}, [([0, 1], 1), ([1, 2], 0)])
    yield Case("LFWPairs", {"split": "test"}, [([1, 0], 1), ([2, 0], 0)])


@builder
def wider_face(root: Path) -> Iterator[Case]:
    base = root / "widerface"
    for split in ("train", "val", "test"):
        for number in range(2):
            picture(base / f"WIDER_{split}" / "images" / "0--Parade" / f"{number}.jpg", number)
    rows = "0--Parade/0.jpg\n2\n1 2 3 4 5 6 7 8 9 0 \n9 8 7 6 5 4 3 2 1 0 \n"
    rows += "0--Parade/1.jpg\n0\n0 0 0 0 0 0 0 0 0 0 \n"
    columns = ("blur", "expression", "illumination", "occlusion", "pose", "invalid")
    first = {"bbox": [[1, 2, 3, 4], [9, 8, 7, 6]]}
    first |= dict(zip(columns, ([5, 5], [6, 4], [7, 3], [8, 2], [9, 1], [0, 0]), strict=True))
    second = {"bbox": [[0] * 4], **{column: [0] for column in columns}}
    for split in ("train", "val"):
        text(base / "wider_face_split" / f"wider_face_{split}_bbx_gt.txt", rows)
        yield Case("WIDERFace", {"split": split}, [(0, first), (1, second)])
    names = "0--Parade/0.jpg\n0--Parade/1.jpg\n"
    text(base / "wider_face_split" / "wider_face_test_filelist.txt", names)
    yield Case("WIDERFace", {"split": "test"}, [(0, None), (1, None)])


# Scenes

_XML = """<annotation><filename>{0}.jpg</filename><size><width>5</width></size>
<object><name>dog</name><bndbox><xmin>1</xmin><ymin>2</ymin><xmax>3</xmax><ymax>4</ymax></bndbox>
</object>{1}</annotation>"""
_BOX = {"name": "dog", "bndbox": {"xmin": "1", "ymin": "2", "xmax": "3", "ymax": "4"}}


@builder
def voc(root: Path) -> Iterator[Case]:
    for year, folder in (("2012", "VOCdevkit/VOC2012"), ("2011", "TrainVal/VOCdevkit/VOC2011")):
        base = root / folder
        expected = []
        for number in range(2):
            picture(base / "JPEGImages" / f"{number}.jpg", number)
            picture(base / "SegmentationClass" / f"{number}.png", number + 5, mode="L")
            more = "<object><name>cat</name></object>" * number
            text(base / "Annotations" / f"{number}.xml", _XML.format(number, more))
            objects = [_BOX, *[{"name": "cat"}] * number]
            content = {"filename": f"{number}.jpg", "size": {"width": "5"}, "object": objects}
            expected.append((number, {"annotation": content}))
        for kind in ("Segmentation", "Main"):
            for part in ("train", "trainval", "val"):
                text(base / "ImageSets" / kind / f"{part}.txt", "1\n0\n")
        yield Case("VOCDetection", {"year": year}, expected[::-1])
        arguments = {"year": year, "image_set": "val"}
        yield Case("VOCSegmentation", arguments, [(1, 6), (0, 5)])


@builder
def sbd(root: Path) -> Iterator[Case]:
    from scipy.sparse import csc_matrix

    expected: dict[str, list[tuple[int, Any]]] = {"boundaries": [], "segmentation": []}
    for number in range(2):
        picture(root / "img" / f"{number}.jpg", number)
        borders = np.zeros((20, 4, 5), np.uint8)
        borders[number, 2] = 1
        cells = np.empty((20, 1), dtype=object)
        cells[:, 0] = [csc_matrix(border) for border in borders]
        classes = np.full((4, 5), number + 3, np.uint8)
        mat(root / "cls" / f"{number}.mat", GTcls={"Segmentation": classes, "Boundaries": cells})
        expected["boundaries"].append((number, borders.tolist()))
        expected["segmentation"].append((number, number + 3))
    for part in ("train", "val", "train_noval"):
        text(root / f"{part}.txt", "0\n1\n")
    for mode, samples in expected.items():
        yield Case("SBDataset", {"mode": mode}, samples)
    yield Case("SBDataset", {"mode": "segmentation", "image_set": "train_noval"}, samples)


@builder
def cityscapes(root: Path) -> Iterator[Case]:
    polygons = {"imgHeight": 4, "objects": [{"label": "car"}]}
    for mode, splits in (
        ("gtFine", ("train", "val", "test")),
        ("gtCoarse", ("train", "train_extra", "val")),
    ):
        for split in splits:
            for number, city in enumerate(("bochum", "aachen")):
                picture(root / "leftImg8bit" / split / city / f"{city}_1_leftImg8bit.png", number)
                stem = root / mode / split / city / f"{city}_1_{mode}_"
                for kind in ("instanceIds", "labelIds", "color"):
                    picture(Path(f"{stem}{kind}.png"), number + 7, mode="L")
                text(Path(f"{stem}polygons.json"), json.dumps(polygons))
    yield Case("Cityscapes", {}, [(1, 8), (0, 7)])
    everything = {"mode": "coarse", "split": "train_extra"}
    everything["target_type"] = ["instance", "semantic", "polygon", "color"]
    yield Case("Cityscapes", everything, [(1, [8, 8, polygons, 8]), (0, [7, 7, polygons, 7])])


@builder
def kitti(root: Path) -> Iterator[Case]:
    raw = root / "Kitti" / "raw"
    expected = []
    for number in range(2):
        for part in ("training", "testing"):
            picture(raw / part / "image_2" / f"{number:06d}.png", number)
        numbers = [0.5, 1.0, 2.0, 3.0, 4.0, 1.5, 1.6, 1.7, 5.0, 6.0, 7.0, -1.5]
        line = f"Car 0.25 {number} {' '.join(map(str, numbers))}\n"
        text(raw / "training" / "label_2" / f"{number:06d}.txt", line * (number + 1))
        one = {"type": "Car", "truncated": 0.25, "occluded": number, "alpha": 0.5}
        one |= {"bbox": numbers[1:5], "dimensions": numbers[5:8], "location": numbers[8:11]}
        expected.append((number, [{**one, "rotation_y": -1.5}] * (number + 1)))
    yield Case("Kitti", {}, expected)
    yield Case("Kitti", {"train": False}, [(0, None), (1, None)])


@builder
def coco(root: Path) -> Iterator[Case]:
    images = [{"id": n + 3, "file_name": f"{n}.jpg", "height": 4, "width": 5} for n in range(2)]
    for number in range(2):
        picture(root / f"{number}.jpg", number)
    box = {"bbox": [1, 1, 2, 2], "category_id": 18, "iscrowd": 0, "area": 4.0}
    boxes = [{**box, "id": 1, "image_id": 4, "segmentation": [[1, 1, 3, 1, 3, 3, 1, 3]]}]
    captions = [{"id": n, "image_id": 3, "caption": f"sentence {n}"} for n in (1, 2)]
    for name, annotations in (("boxes", boxes), ("captions", captions)):
        content = {"images": images, "annotations": annotations}
        text(root / f"{name}.json", json.dumps(content))
    yield Case("CocoDetection", {"annFile": str(root / "boxes.json")}, [(0, []), (1, boxes)])
    arguments = {"annFile": str(root / "captions.json")}
    yield Case("CocoCaptions", arguments, [(0, ["sentence 1", "sentence 2"]), (1, [])])


# Sentences


@builder
def flickr(root: Path) -> Iterator[Case]:
    for number in range(2):
        picture(root / f"{number}_ab.jpg", number)
    page = "".join(
        f"<tr><td><a href='x'>http://flickr.com/photos/me/{n}/</a></td><td><ul>"
        f"<li>One {n} .<li>Two {n} .</ul></td></tr>"
        for n in (1, 0)
    )
    text(root / "8k.html", f"<p>Head</p><table>{page}<tr><td>Image Not Found</td></tr></table>")
    rows = [f"{n}_ab.jpg#{k}\tSentence {k} of {n} .\n" for n in (1, 0) for k in range(2)]
    text(root / "30k.token", "".join(rows))
    arguments = {"ann_file": str(root / "8k.html")}
    yield Case("Flickr8k", arguments, [(n, [f"One {n} .", f"Two {n} ."]) for n in range(2)])
    arguments = {"ann_file": str(root / "30k.token")}
    expected = [(n, [f"Sentence {k} of {n} ." for k in range(2)]) for n in range(2)]
    yield Case("Flickr30k", arguments, expected)


@builder
def sbu(root: Path) -> Iterator[Case]:
    text(root / "SBUCaptionedPhotoDataset.tar.gz", "")
    base = root / "dataset"
    urls = "".join(f"http://static.flickr.com/1/{n}_ab.jpg\n" for n in range(3))
    text(base / "SBU_captioned_photo_dataset_urls.txt", urls)
    text(base / "SBU_captioned_photo_dataset_captions.txt", "zero\none\ntwo\n")
    for number in (0, 2):
        picture(base / f"{number}_ab.jpg", number)
    yield Case("SBU", {"download": False}, [(0, "zero"), (2, "two")])


@builder
def lsun(root: Path) -> Iterator[Case]:
    import lmdb

    for name, count in (("bedroom_train", 2), ("tower_train", 1), ("test", 1)):
        path = str(root / f"{name}_lmdb")
        with lmdb.open(path, map_size=1 << 20) as base, base.begin(write=True) as transaction:
            for number in range(count):
                file = io.BytesIO()
                Image.new("RGB", (5, 4), (number, 1, 2)).save(file, "PNG")
                transaction.put(str(number).encode(), file.getvalue())
    arguments = {"classes": ["bedroom_train", "tower_train"]}
    yield Case("LSUN", arguments, [(0, 0), (1, 0), (0, 1)])
    yield Case("LSUN", {"classes": "test"}, [(0, 0)])
