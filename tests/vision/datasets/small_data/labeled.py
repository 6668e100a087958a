"""Pictures in files of their own, with a label each."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from vision.datasets.small_data.writing import Case, builder, mat, picture, text


def is_webp(path: str) -> bool:
    return path.endswith("webp")


@builder
def folders(root: Path) -> Iterator[Case]:
    picture(root / "cat" / "0.png", 1)
    picture(root / "cat" / "more" / "1.JPG", 2)
    picture(root / "ant" / "2.webp", 3)
    text(root / "cat" / "notes.txt", "no picture")
    yield Case("ImageFolder", {}, [(3, 0), (1, 1), (2, 1)])
    yield Case("ImageFolder", {"is_valid_file": is_webp, "allow_empty": True}, [(3, 0)])


@builder
def food101(root: Path) -> Iterator[Case]:
    base = root / "food-101"
    for number, name in enumerate(("pie/1", "pie/2", "egg/3")):
        picture(base / "images" / f"{name}.jpg", number)
    text(base / "meta" / "train.json", json.dumps({"pie": ["pie/1", "pie/2"], "egg": ["egg/3"]}))
    text(base / "meta" / "test.json", json.dumps({"pie": ["pie/2"], "egg": []}))
    yield Case("Food101", {}, [(0, 1), (1, 1), (2, 0)])
    yield Case("Food101", {"split": "test"}, [(1, 1)])


@builder
def dtd(root: Path) -> Iterator[Case]:
    base = root / "dtd" / "dtd"
    for number, name in enumerate(("dotted/a.jpg", "banded/b.jpg")):
        picture(base / "images" / name, number)
    for split in ("train", "val", "test"):
        text(base / "labels" / f"{split}3.txt", "dotted/a.jpg\nbanded/b.jpg\n")
        yield Case("DTD", {"split": split, "partition": 3}, [(0, 1), (1, 0)])


@builder
def aircraft(root: Path) -> Iterator[Case]:
    data = root / "fgvc-aircraft-2013b" / "data"
    picture(data / "images" / "0001.jpg", 1)
    picture(data / "images" / "0002.jpg", 2)
    for level, file in (
        ("variant", "variants"),
        ("family", "families"),
        ("manufacturer", "manufacturers"),
    ):
        text(data / f"{file}.txt", "A 300\nBoeing 707\n")
        text(data / f"images_{level}_train.txt", "0002 Boeing 707\n0001 A 300\n")
        arguments = {"annotation_level": level, "split": "train"}
        yield Case("FGVCAircraft", arguments, [(2, 1), (1, 0)])


@builder
def sun397(root: Path) -> Iterator[Case]:
    text(root / "SUN397" / "ClassName.txt", "/a/abbey\n/a/apse/indoor\n")
    picture(root / "SUN397" / "a" / "abbey" / "sun_1.jpg", 1)
    picture(root / "SUN397" / "a" / "apse" / "indoor" / "sun_2.jpg", 2)
    yield Case("SUN397", {}, [(1, 0), (2, 1)])


@builder
def clevr(root: Path) -> Iterator[Case]:
    base = root / "clevr" / "CLEVR_v1.0"
    for split in ("train", "val", "test"):
        for number in range(2):
            picture(base / "images" / split / f"{number}.png", number)
        scenes = [{"image_filename": f"{n}.png", "objects": [{}] * (3 - n)} for n in range(2)]
        text(base / "scenes" / f"CLEVR_{split}_scenes.json", json.dumps({"scenes": scenes}))
        labels = (None, None) if split == "test" else (3, 2)
        yield Case("CLEVRClassification", {"split": split}, [*enumerate(labels)])


@builder
def rendered_sst2(root: Path) -> Iterator[Case]:
    for split, folder in (("train", "train"), ("val", "valid"), ("test", "test")):
        picture(root / "rendered-sst2" / folder / "negative" / "1.png", 1)
        picture(root / "rendered-sst2" / folder / "positive" / "0.png", 2)
        yield Case("RenderedSST2", {"split": split}, [(1, 0), (2, 1)])


@builder
def gtsrb(root: Path) -> Iterator[Case]:
    base = root / "gtsrb"
    for number in range(3):
        picture(base / "GTSRB" / "Training" / f"{number:05d}" / "x.ppm", number)
        picture(base / "GTSRB" / "Final_Test" / "Images" / f"{number:05d}.ppm", number)
    rows = ["Filename; Width; ClassId", *(f"{n:05d}.ppm; 5; {n + 7}" for n in range(3))]
    text(base / "GT-final_test.csv", "\n".join(rows))
    yield Case("GTSRB", {}, [(0, 0), (1, 1), (2, 2)])
    yield Case("GTSRB", {"split": "test"}, [(0, 7), (1, 8), (2, 9)])


@builder
def stanford_cars(root: Path) -> Iterator[Case]:
    base = root / "stanford_cars"
    rows = np.array(
        [(f"{n:05d}.jpg", n + 1) for n in range(2)], dtype=[("fname", "O"), ("class", "u1")]
    )
    mat(base / "devkit" / "cars_meta.mat", class_names=np.array(["Audi", "Dodge"], dtype=object))
    mat(base / "devkit" / "cars_train_annos.mat", annotations=rows)
    mat(base / "cars_test_annos_withlabels.mat", annotations=rows)
    for split in ("train", "test"):
        for number in range(2):
            picture(base / f"cars_{split}" / f"{number:05d}.jpg", number)
        yield Case("StanfordCars", {"split": split}, [(0, 0), (1, 1)])


@builder
def imagenette(root: Path) -> Iterator[Case]:
    for size, name in (
        ("full", "imagenette2"),
        ("320px", "imagenette2-320"),
        ("160px", "imagenette2-160"),
    ):
        for split in ("train", "val"):
            picture(root / name / split / "n03000684" / "a.JPEG", 1)
            picture(root / name / split / "n01440764" / "b.JPEG", 2)
            yield Case("Imagenette", {"size": size, "split": split}, [(2, 0), (1, 1)])


@builder
def omniglot(root: Path) -> Iterator[Case]:
    for name in ("images_background", "images_evaluation"):
        base = root / "omniglot-py"
        picture(base / name / "Greek" / "character01" / "0001_01.png", 1, mode="L")
        picture(base / name / "Greek" / "character02" / "0002_01.png", 2, mode="L")
        picture(base / name / "Balinese" / "character01" / "0003_01.png", 3, mode="L")
        text(base / f"{name}.zip", "")
    yield Case("Omniglot", {}, [(3, 0), (1, 1), (2, 2)])
    yield Case("Omniglot", {"background": False}, [(3, 0), (1, 1), (2, 2)])


@builder
def country211(root: Path) -> Iterator[Case]:
    for split in ("train", "valid", "test"):
        picture(root / "country211" / split / "AD" / "a.jpg", 1)
        picture(root / "country211" / split / "ZW" / "b.jpg", 2)
        yield Case("Country211", {"split": split}, [(1, 0), (2, 1)])


@builder
def eurosat(root: Path) -> Iterator[Case]:
    picture(root / "eurosat" / "2750" / "River" / "River_1.jpg", 1)
    picture(root / "eurosat" / "2750" / "Forest" / "Forest_1.jpg", 2)
    yield Case("EuroSAT", {}, [(2, 0), (1, 1)])


@builder
def places365(root: Path) -> Iterator[Case]:
    text(root / "categories_places365.txt", "/a/airfield 0\n/b/bridge 1\n")
    for split, file, folder in (
        ("train-standard", "train_standard", "data_large_standard"),
        ("train-challenge", "train_challenge", "data_large_challenge"),
        ("val", "val", "val_large"),
        ("test", "test", "test_large"),
    ):
        names = ("/b/bridge/1.jpg", "/a/airfield/2.jpg") if "train" in split else ("1.jpg", "2.jpg")
        labels: Any = (None, None) if split == "test" else (1, 0)
        rows = [n if v is None else f"{n} {v}" for n, v in zip(names, labels, strict=True)]
        text(root / f"places365_{file}.txt", "\n".join(rows) + "\n")
        for number, name in enumerate(names):
            picture(root / folder / name.lstrip("/"), number)
        yield Case("Places365", {"split": split}, [*enumerate(labels)])


@builder
def flowers102(root: Path) -> Iterator[Case]:
    base = root / "flowers-102"
    for number in range(1, 4):
        picture(base / "jpg" / f"image_{number:05d}.jpg", number)
    mat(base / "imagelabels.mat", labels=np.array([[7, 2, 102]], np.uint8))
    ids = {"trnid": [[1, 3]], "valid": [[2, 1]], "tstid": [[3, 2]]}
    mat(base / "setid.mat", **{name: np.array(value) for name, value in ids.items()})
    yield Case("Flowers102", {}, [(1, 6), (3, 101)])
    yield Case("Flowers102", {"split": "val"}, [(2, 1), (1, 6)])
    yield Case("Flowers102", {"split": "test"}, [(3, 101), (2, 1)])


@builder
def caltech256(root: Path) -> Iterator[Case]:
    base = root / "caltech256" / "256_ObjectCategories"
    picture(base / "001.ak47" / "001_0001.jpg", 1)
    picture(base / "001.ak47" / "001_0002.jpg", 2)
    text(base / "001.ak47" / "RENAME2", "")
    picture(base / "002.american-flag" / "002_0001.jpg", 3)
    yield Case("Caltech256", {}, [(1, 0), (2, 0), (3, 1)])


@builder
def caltech101(root: Path) -> Iterator[Case]:
    base = root / "caltech101"
    picture(base / "101_ObjectCategories" / "BACKGROUND_Google" / "image_0001.jpg", 9)
    outlines = []
    for number, (name, folder) in enumerate((("Faces", "Faces_2"), ("ant", "ant"))):
        picture(base / "101_ObjectCategories" / name / "image_0001.jpg", number)
        outlines.append([[1.5, 2.0], [3.0, float(number)]])
        file = base / "Annotations" / folder / "annotation_0001.mat"
        mat(file, obj_contour=np.array(outlines[-1]))
    yield Case("Caltech101", {}, [(0, 0), (1, 1)])
    yield Case("Caltech101", {"target_type": "annotation"}, [*enumerate(outlines)])
    both = {"target_type": ["category", "annotation"]}
    yield Case("Caltech101", both, [(n, [n, outlines[n]]) for n in range(2)])


@builder
def pets(root: Path) -> Iterator[Case]:
    base = root / "oxford-iiit-pet"
    rows = [("great_pyrenees_1", 2, 2), ("Abyssinian_1", 1, 1)]
    for split in ("trainval", "test"):
        lines = [f"{name} {label} {kind} 1\n" for name, label, kind in rows]
        text(base / "annotations" / f"{split}.txt", "".join(lines))
    for number, (name, _, _) in enumerate(rows):
        picture(base / "images" / f"{name}.jpg", number)
        picture(base / "annotations" / "trimaps" / f"{name}.png", number + 1, mode="L")
    yield Case("OxfordIIITPet", {}, [(0, 1), (1, 0)])
    yield Case("OxfordIIITPet", {"target_types": []}, [(0, None), (1, None)])
    everything = {"target_types": ("category", "binary-category", "segmentation"), "split": "test"}
    yield Case("OxfordIIITPet", everything, [(0, [1, 1, 1]), (1, [0, 0, 2])])


@builder
def imagenet(root: Path) -> Iterator[Case]:
    from rushlight import save

    for split in ("train", "val"):
        picture(root / split / "n01440764" / "a.JPEG", 1)
        picture(root / split / "n01443537" / "b.JPEG", 2)
    names = {"n01440764": ("tench", "Tinca tinca"), "n01443537": ("goldfish",)}
    save((names, ["n01443537"]), root / "meta.bin")
    yield Case("ImageNet", {}, [(1, 0), (2, 1)])
    yield Case("ImageNet", {"split": "val"}, [(1, 0), (2, 1)])


@builder
def inaturalist(root: Path) -> Iterator[Case]:
    species = ("00000_Animalia_A_B_C_D_Corvus_corax", "00001_Plantae_A_E_F_G_Rosa_canina")
    for version in ("2021_train", "2021_train_mini", "2021_valid"):
        for number, name in enumerate(species):
            picture(root / version / name / "a.jpg", number)
    yield Case("INaturalist", {}, [(0, 0), (1, 1)])
    ranks = {"target_type": ["full", "kingdom", "phylum", "genus"], "version": "2021_valid"}
    yield Case("INaturalist", ranks, [(0, [0, 0, 0, 0]), (1, [1, 1, 0, 1])])
    for version in ("2018", "2019"):
        picture(root / version / "Birds" / "1" / "a.jpg", 1)
        picture(root / version / "Fungi" / "0" / "b.jpg", 2)
        targets = {"version": version, "target_type": ["full", "super"]}
        yield Case("INaturalist", targets, [(2, [0, 1]), (1, [1, 0])])
    picture(root / "2017" / "Birds" / "Corvus corax" / "a.jpg", 1)
    yield Case("INaturalist", {"version": "2017"}, [(1, 0)])
