"""Downloads, their cache and hashes, and models of repositories, from a server in this process."""

import hashlib
import io
import json
import os
import urllib.error
import zipfile
from typing import Any

import pytest
from local_site import Site

import rushlight as torch
from rushlight import hub

CONFIG = '''
dependencies = ["json"]
from helper import base

def model(size=2, scale=1):
    """Makes a list."""
    return [scale * base()] * size

def _private():
    pass

number = 3
'''
HELPER = "def base():\n    return 7\n"


@pytest.fixture
def site(tmp_path, monkeypatch):
    result = Site()
    monkeypatch.setattr(hub, "_SITE", result.url)
    monkeypatch.setattr(hub, "_API", result.url)
    monkeypatch.setattr(hub, "_dir", str(tmp_path / "hub"))
    yield result
    result.close()


def saved(obj):
    file = io.BytesIO()
    torch.save(obj, file)
    return file.getvalue()


def zipped(**files):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return file.getvalue()


def repository(config=CONFIG):
    return zipped(**{"me-repo-1a2b/hubconf.py": config, "me-repo-1a2b/helper.py": HELPER})


# Files


def test_weights_are_downloaded_once(site, capsys) -> None:
    site.pages["/w/net.pth"] = 200, saved({"weight": torch.ones(2)})
    for _ in range(2):
        state = hub.load_state_dict_from_url(f"{site.url}/w/net.pth?x=1", progress=True)
        assert state["weight"].tolist() == [1.0, 1.0]
    assert len(site.requests) == 1
    assert os.listdir(f"{hub.get_dir()}/checkpoints") == ["net.pth"]
    assert f'Downloading: "{site.url}/w/net.pth?x=1" to ' in capsys.readouterr().err


def test_hashes_are_compared(site, tmp_path) -> None:
    data = saved([1])
    digits = hashlib.sha256(data).hexdigest()[:8]
    site.pages[f"/net-{digits}.pth"] = site.pages["/net-0badf00d.pth"] = 200, data
    options = {"model_dir": str(tmp_path / "w"), "check_hash": True, "progress": False}
    assert hub.load_state_dict_from_url(f"{site.url}/net-{digits}.pth", **options) == [1]
    with pytest.raises(RuntimeError, match=r'invalid hash value \(expected "0badf00d", got '):
        hub.load_state_dict_from_url(f"{site.url}/net-0badf00d.pth", **options)
    assert os.listdir(tmp_path / "w") == [f"net-{digits}.pth"]
    name = {"file_name": "other.pth", "model_dir": str(tmp_path / "w")}
    assert hub.load_state_dict_from_url(f"{site.url}/net-0badf00d.pth", **name) == [1]


def test_what_is_missing_or_cut_off_leaves_nothing(site, tmp_path) -> None:
    with pytest.raises(urllib.error.HTTPError, match="404") as refused:
        hub.download_url_to_file(f"{site.url}/none.pth", str(tmp_path / "x"), progress=False)
    refused.value.close()
    site.pages["/x.pth"] = 200, b"0123456789"
    site.missing = 5
    with pytest.raises(RuntimeError, match="cut off after 10 of 15 bytes"):
        hub.download_url_to_file(f"{site.url}/x.pth", str(tmp_path / "x"), progress=False)
    assert not [name for name in os.listdir(tmp_path) if name.startswith("x")]
    with pytest.raises(RuntimeError, match="Parent directory .* does not exist"):
        hub.download_url_to_file(f"{site.url}/x.pth", str(tmp_path / "no" / "x"), progress=False)


def test_a_zipped_file_of_weights_is_read(site) -> None:
    site.pages["/net.zip"] = 200, zipped(**{"net.pth": saved([torch.ones(1)])})
    (x,) = hub.load_state_dict_from_url(f"{site.url}/net.zip", progress=False)
    assert x.tolist() == [1.0]


def test_the_cache_is_where_pytorch_has_it(monkeypatch) -> None:
    monkeypatch.setattr(hub, "_dir", None)
    monkeypatch.delenv("TORCH_HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert hub.get_dir() == os.path.expanduser("~/.cache/torch/hub")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert hub.get_dir() == "/cache/torch/hub"
    monkeypatch.setenv("TORCH_HOME", "/home/x")
    assert torch.hub.get_dir() == "/home/x/hub"


# Repositories


def test_models_of_a_folder(tmp_path) -> None:
    (tmp_path / "hubconf.py").write_text(CONFIG)
    (tmp_path / "helper.py").write_text(HELPER)
    assert hub.load(str(tmp_path), "model", 3, source="local", scale=2) == [14, 14, 14]
    with pytest.raises(RuntimeError, match="Cannot find callable other in hubconf"):
        hub.load(str(tmp_path), "other", source="local")
    with pytest.raises(RuntimeError, match="Cannot find callable number"):
        hub.load(str(tmp_path), "number", source="local")
    with pytest.raises(ValueError, match="a string of function name"):
        hub.load(str(tmp_path), 3, source="local")
    with pytest.raises(ValueError, match='Unknown source: "web"'):
        hub.load(str(tmp_path), "model", source="web")
    (tmp_path / "hubconf.py").write_text("dependencies = ['no_such_package']")
    with pytest.raises(RuntimeError, match="Missing dependencies: no_such_package"):
        hub.load(str(tmp_path), "model", source="local")


def test_models_of_a_repository(site, capsys) -> None:
    site.pages["/me/repo/tree/main/"] = 200, b""
    branch = [{"name": "main", "commit": {"sha": "1a2b"}}]
    site.pages["/repos/me/repo/branches"] = 200, json.dumps(branch).encode()
    site.pages["/repos/me/repo/tags"] = 200, b"[]"
    site.pages["/me/repo/zipball/main"] = 200, repository()
    assert hub.load("me/repo", "model", trust_repo=True) == [7, 7]
    assert sorted(os.listdir(hub.get_dir())) == ["me_repo_main", "trusted_list"]
    assert hub.list("me/repo") == ["base", "model"]
    assert hub.help("me/repo:main", "model") == "Makes a list."
    assert "Using cache found in" in capsys.readouterr().err
    assert sum("zipball" in path for path in site.requests) == 1
    site.pages["/me/repo/zipball/main"] = 200, repository("def new(): return 1")
    assert hub.load("me/repo", "new", force_reload=True, verbose=False) == 1
    with pytest.raises(ValueError, match=r"Cannot find fork in .*/me/repo"):
        hub.load("me/repo:fork", "model")


def test_untrusted_repositories_are_asked_about(site, monkeypatch) -> None:
    site.pages["/me/repo/zipball/v1"] = 200, repository()
    answers = iter(["n", "perhaps", "y"])
    monkeypatch.setattr("builtins.input", lambda question: next(answers))
    with pytest.raises(Exception, match="Untrusted repository"):
        hub.load("me/repo:v1", "model", skip_validation=True)
    with pytest.raises(ValueError, match="Unrecognized response perhaps"):
        hub.load("me/repo:v1", "model", skip_validation=True)
    assert not [path for path in site.requests if "zipball" in path]
    assert hub.load("me/repo:v1", "model", skip_validation=True) == [7, 7]
    with open(f"{hub.get_dir()}/trusted_list") as file:
        assert file.read() == "me_repo\n"


@pytest.mark.parametrize("name", ["me", "me/../x", "../x:main", "me/repo:../..", "me/a b", "/", ""])
def test_odd_names_of_repositories_are_refused(site, name) -> None:
    with pytest.raises(ValueError, match="Expected"):
        hub.load(name, "model", trust_repo=True)
    assert site.requests == []


def test_archives_that_lead_elsewhere_are_refused(site, tmp_path) -> None:
    for entry in ("../evil.py", "/evil.py", "a/../../evil.py", "..\\evil.py"):
        site.pages["/me/repo/zipball/v1"] = 200, zipped(**{"r/hubconf.py": "", entry: ""})
        with pytest.raises(ValueError, match="leads out of the archive"):
            hub.load("me/repo:v1", "model", trust_repo=True, skip_validation=True)
    assert sorted(os.listdir(hub.get_dir())) == ["trusted_list"]


def test_answers_that_are_not_passed_on_are_closed(site, monkeypatch) -> None:
    errors: list[urllib.error.HTTPError] = []
    make = urllib.error.HTTPError.__init__

    def note(error: urllib.error.HTTPError, *args: Any) -> None:
        make(error, *args)
        errors.append(error)

    monkeypatch.setattr(urllib.error.HTTPError, "__init__", note)
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    site.pages["/me/repo/tree/main/"] = 404, b"no main"
    site.pages["/repos/me/repo/branches"] = 403, b"no rights"
    with pytest.raises(urllib.error.HTTPError, match="403"):
        hub.load("me/repo", "model", trust_repo=True)
    site.pages["/me/repo/zipball/master"] = 300, b"a tag and a branch"
    site.pages["/me/repo/zipball/refs/heads/master"] = 200, repository()
    with pytest.warns(UserWarning, match="The ref master is ambiguous"):
        assert hub.load("me/repo", "model", skip_validation=True) == [7, 7]
    passed_on = errors.pop(2)
    assert [error.code for error in errors] == [404, 403, 404, 300]
    assert passed_on.code == 403 and passed_on.read() == b"no rights"
    passed_on.close()
    assert all(error.fp.closed for error in errors)


def test_without_a_network_the_cache_is_used(site, monkeypatch) -> None:
    site.pages["/me/repo/zipball/master"] = 200, repository()
    hub.load("me/repo:master", "model", trust_repo=True, skip_validation=True)
    monkeypatch.setattr(hub, "_SITE", "http://127.0.0.1:9")  # where nobody listens
    assert hub.load("me/repo", "model") == [7, 7]
    with pytest.raises(RuntimeError, match="no internet connection"):
        hub.load("me/other", "model")
