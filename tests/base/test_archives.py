"""Entries of archives are read by their paths, up to a limit, and never lead out of the archive."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

import pytest

from depyf.base import archives
from depyf.base.archives import ArchiveError, by_folder, entries, is_archive, read_file, split_path


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / "library.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr("m.py", b"x = 1\n")
        opened.writestr("package/", b"")
        opened.writestr("package/n.py", b"y = 2\n")
        opened.writestr("../out.py", b"z = 3\n")
    return path


def test_files_and_entries_are_read_by_their_paths(library: Path) -> None:
    (library.parent / "plain.py").write_bytes(b"w = 0\n")
    assert read_file(str(library.parent / "plain.py")) == b"w = 0\n"
    assert read_file(f"{library}{os.sep}m.py") == b"x = 1\n"
    assert read_file(os.path.join(str(library), "package", "n.py")) == b"y = 2\n"
    assert entries(str(library)) == ["m.py", "package/n.py", "../out.py"]
    assert by_folder(entries(str(library))) == {"": ["m.py"], "package": ["n.py"], "..": ["out.py"]}


def test_only_a_path_below_a_file_is_split(library: Path) -> None:
    assert split_path(str(library)) is None
    assert split_path(str(library.parent / "nothing" / "m.py")) is None
    assert split_path(f"{library}/a/b.py") == (str(library), "a/b.py")


def test_an_archive_behind_a_program_is_one(library: Path, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF" + bytes(100) + library.read_bytes())
    assert is_archive(str(program))
    assert read_file(f"{program}/m.py") == b"x = 1\n"
    assert not is_archive(str(tmp_path))


@pytest.mark.parametrize("name", ["../out.py", "package/../m.py", "/m.py", "package//n.py", "a\\..\\m.py", "C:/m.py"])
def test_no_name_leads_out_of_the_archive(library: Path, name: str) -> None:
    with pytest.raises(ArchiveError, match="leads out of the archive"):
        read_file(f"{library}/{name}")


def test_what_is_not_there_is_an_error_of_the_system(library: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no such entry"):
        read_file(f"{library}/other.py")
    (tmp_path / "text.txt").write_text("text")
    with pytest.raises(NotADirectoryError, match="no zip archive"):
        read_file(str(tmp_path / "text.txt" / "m.py"))


def test_an_entry_is_read_up_to_a_limit(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "LARGEST", 5)
    with pytest.raises(ArchiveError, match="more than 5 bytes"):
        read_file(f"{library}/m.py")
    monkeypatch.setattr(archives, "MOST", 2)
    with pytest.raises(ArchiveError, match="more than 2 entries"):
        entries(str(library))


def test_an_encrypted_entry_says_so(tmp_path: Path) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as opened:
        opened.writestr("m.py", b"x = 1\n")
    changed = bytearray(data.getvalue())
    changed[6] |= 1  # the flag in the local header, and in the directory
    changed[changed.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "closed.zip").write_bytes(bytes(changed))
    with pytest.raises(ArchiveError, match="is encrypted"):
        read_file(str(tmp_path / "closed.zip" / "m.py"))


def test_a_damaged_archive_gives_a_message_whatever_is_damaged(library: Path, tmp_path: Path) -> None:
    whole, path = library.read_bytes(), tmp_path / "damaged.zip"
    for position in range(0, len(whole), 3):
        damaged = bytearray(whole)
        damaged[position] ^= 0x55
        path.write_bytes(bytes(damaged))
        found = None
        try:
            found = read_file(f"{path}/m.py")
            entries(str(path))
        except (ArchiveError, OSError):
            continue
        assert found == b"x = 1\n"
