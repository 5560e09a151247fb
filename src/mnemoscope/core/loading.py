"""Import of a user's file: as a script, as a part of its package, with stand-ins for packages that are not installed.

Code is written to be started from somewhere: its own folder (``python FILE.py``), or the root of its repository
(``python -m package.module``). A file is tried in each of these ways, and the first that works is kept.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import importlib
import importlib.util
import inspect
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from mnemoscope.core.errors import Overtime, UserError
from mnemoscope.core.printed import aside
from mnemoscope.core.standins import distribution, stand_in, standing_in

__all__ = ["advice_on", "import_module", "load_file", "notes_of", "stranger", "time_limit", "where_in"]

_ROOTS = (".git", "pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "environment.yml")
_SECONDS = 120
_MOST_STAND_INS = 20
_NOTES: dict[str, tuple[str, ...]] = {}
_LOADED: dict[str, ModuleType] = {}
"""Files that were read, by their place and time."""
_LOCAL: dict[str, ModuleType] = {}
"""Modules beside the files that were read last, by the names under which they imported them."""


def load_file(path: Path) -> ModuleType:
    """Return the module that a file defines. This runs its code.

    Raises
    ------
    UserError
        If there is no such file or it cannot be run: the error, the line of the user's code, and what to do.
    """
    if not path.is_file():
        raise UserError(f"there is no file {str(path)!r}")
    stamp = f"{path.resolve()} {path.stat().st_mtime_ns}"
    name = f"mnemoscope_user_{path.stem}_{hashlib.sha256(stamp.encode()).hexdigest()[:16]}"
    if name not in _LOADED:  # one file is one module: its classes are the same objects whoever asks
        _LOADED[name] = sys.modules[name] = _loaded(path, name)
    return _LOADED[name]


def import_module(name: str) -> ModuleType:
    """Return an installed module, or one below the current folder, by its dotted name."""
    here = [str(Path.cwd()), str(Path.cwd() / "src")]
    try:
        with _on_path(here, first=False), stranger(name):
            return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise UserError(f"the module {name!r} cannot be imported: {_brief(error)}") from error


def notes_of(module: str) -> tuple[str, ...]:
    """Return what had to be done to import a module, in plain words."""
    return _NOTES.get(module, ())


def _loaded(path: Path, name: str) -> ModuleType:
    missing: list[str] = []
    roots = _roots(path)
    while True:
        try:
            module = _first_that_works(path, name, roots)
        except (Exception, SystemExit) as error:
            package = _culprit(error, roots)
            if package is None or package in missing or len(missing) == _MOST_STAND_INS:
                raise UserError(f"{path} cannot be run: {_explained(error, roots)}") from error
            missing.append(package)
            stand_in(package)
        else:
            _NOTES[module.__name__] = tuple(
                f"{package} cannot be imported here, and an empty module stands in for it" for package in missing
            )
            return module


def _first_that_works(path: Path, name: str, roots: list[Path]) -> ModuleType:
    """Import a file as a script, or as a part of its package; raise the error of the way that was the likeliest."""
    ways: list[Callable[[], ModuleType]] = [lambda: _as_script(path, name), lambda: _within_package(path)]
    ways.append(lambda: _without_init(path, name))
    _forget_others(roots)
    if _relative_level(path):
        ways = ways[1:]
    elif not (path.parent / "__init__.py").exists():
        ways = ways[:1]
    first: BaseException | None = None
    for way in ways:
        before = set(sys.modules)
        try:
            with _on_path([str(root) for root in roots]), _script_arguments(path), standing_in(), stranger(str(path)):
                return way()
        except (Exception, SystemExit) as error:
            first = first or error
            for fresh in set(sys.modules) - before:  # half of a module is worse than none
                if _is_under(sys.modules[fresh], roots):
                    del sys.modules[fresh]
        finally:
            _LOCAL.update({key: sys.modules[key] for key in set(sys.modules) - before})
    assert first is not None
    raise first


def _as_script(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UserError(f"{str(path)!r} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and typing look their module up here while it runs
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _within_package(path: Path) -> ModuleType:
    """Import by the dotted name that the file has below the folder that holds its package."""
    root = _package_root(path)
    dotted = ".".join(path.resolve().with_suffix("").relative_to(root).parts)
    module = importlib.import_module(dotted)
    if Path(getattr(module, "__file__", None) or "").resolve() != path.resolve():
        raise UserError(f"another package is called {dotted.partition('.')[0]}")
    return module


def _without_init(path: Path, name: str) -> ModuleType:
    """Import within a package whose ``__init__`` is not run: it may import everything that the repository has."""
    root = _package_root(path)
    parent, folder = f"{name}_package", root
    for part in ("", *path.resolve().parent.relative_to(root).parts):
        folder = folder / part
        parent = f"{parent}.{part}" if part else parent
        package = ModuleType(parent)
        package.__path__ = [str(folder)]
        package.__package__ = parent
        sys.modules[parent] = package
    return _as_script(path, f"{parent}.{path.stem}")


def _package_root(path: Path) -> Path:
    """Return the folder above the outermost package of a file, by ``__init__`` files and by relative imports."""
    folder = path.resolve().parent
    level = _relative_level(path)
    depth = 0
    while (folder / "__init__.py").exists() or depth < level:
        if folder == folder.parent:
            break
        folder, depth = folder.parent, depth + 1
    return folder


def _roots(path: Path) -> list[Path]:
    """Return where a file's imports may be found: its folder, its package's root, the repository's, and their src."""
    folder = path.resolve().parent
    above = next((each for each in (folder, *folder.parents) if any((each / mark).exists() for mark in _ROOTS)), folder)
    found = [folder, _package_root(path), above, above / "src"]
    return [each for each in dict.fromkeys(found) if each.is_dir()]


@cache
def _relative_level(path: Path) -> int:
    """Return how many folders up the relative imports of a file reach; 0 where it has none."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8", errors="replace"))
    except (SyntaxError, ValueError):
        return 0
    return max((node.level for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)), default=0)


def _place(module: ModuleType) -> Path | None:
    """Return where a module lies, if it is a user's: not installed, not Python's own, nor ours, wherever we lie."""
    if module.__name__.partition(".")[0] == "mnemoscope":
        return None
    found = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), None)
    if not found or "site-packages" in found or found.startswith(sys.base_prefix):
        return None
    return Path(found).resolve()


def _is_under(module: ModuleType, roots: list[Path]) -> bool:
    place = _place(module)
    return place is not None and any(place.is_relative_to(root) for root in roots)


def _forget_others(roots: list[Path]) -> None:
    """Forget modules that lie beside another user's file, so that each file finds its own ``utils``."""
    for name, module in list(_LOCAL.items()):
        if _is_under(module, roots):
            continue  # this file's own: forgotten when a file from elsewhere is read
        if sys.modules.get(name) is module and _place(module) is not None:
            del sys.modules[name]
        _LOCAL.pop(name)


@contextlib.contextmanager
def _on_path(folders: list[str], first: bool = True) -> Iterator[None]:
    """Search these folders first while a file is read, and last from then on, for what it imports when it is called."""
    kept = list(sys.path)
    own = [folder for folder in folders if folder not in kept]
    sys.path[:] = [*folders, *kept] if first else [*kept, *own]
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path[:] = [*kept, *own]


@contextlib.contextmanager
def _script_arguments(path: Path) -> Iterator[None]:
    """Hide the words of our own command line from a script that reads its own."""
    kept, sys.argv = sys.argv, [str(path)]
    try:
        yield
    finally:
        sys.argv = kept


@contextlib.contextmanager
def stranger(name: str, seconds: float | None = None) -> Iterator[None]:
    """Keep standard output free of what a stranger's code prints, and end it when it takes too long."""
    with aside(), time_limit(seconds or _SECONDS, name):
        yield


class _Rung(BaseException):
    """An alarm that rings: no handler of errors within catches it."""


@contextlib.contextmanager
def time_limit(seconds: float, name: str) -> Iterator[None]:
    """Raise `Overtime` when what runs inside takes longer; without effect where no alarm can be set."""
    usable = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    outer = signal.getitimer(signal.ITIMER_REAL)[0] if usable else 0.0
    if not usable or 0 < outer <= seconds:  # an alarm that rings earlier stays
        yield
        return

    rung = _Rung()

    def ring(number: int, frame: FrameType | None) -> None:
        raise rung

    begin = time.monotonic()
    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except _Rung as found:
        if found is not rung:
            raise
        raise Overtime(f"{name} did not return within {seconds:.3g} seconds") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if outer:
            signal.setitimer(signal.ITIMER_REAL, max(outer - (time.monotonic() - begin), 0.001))


def _culprit(error: BaseException, roots: list[Path]) -> str | None:
    """Return the package whose import failed, where it is not the user's own."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        package = error.name.partition(".")[0]
        own = any((root / package).exists() or (root / f"{package}.py").exists() for root in roots)
        known = package in sys.stdlib_module_names or package in ("torch", "mnemoscope")
        return None if own or known else package
    if not isinstance(error, ImportError | OSError | RuntimeError | AttributeError):
        return None
    # An installed package that fails while it is imported, such as one that wants a GPU's library.
    frames = traceback.extract_tb(error.__traceback__)
    own_frames = [i for i, frame in enumerate(frames) if _owned(frame.filename, roots)]
    if not own_frames or not any("site-packages" in frame.filename for frame in frames[own_frames[-1] :]):
        return None
    return _imported(frames[own_frames[-1]].line or "")


def _imported(line: str) -> str | None:
    try:
        node = ast.parse(line.strip()).body[0]
    except (SyntaxError, IndexError):
        return None
    names = [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
    names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
    package = (names[0] or "").partition(".")[0] if names else ""
    return package if package and package not in ("torch", "mnemoscope") else None


def _owned(file: str, roots: list[Path]) -> bool:
    return "site-packages" not in file and any(Path(file).is_relative_to(root) for root in roots)


def _explained(error: BaseException, roots: list[Path]) -> str:
    """Return the error with the user's own line, and what to do where that is known."""
    where = "" if isinstance(error, SyntaxError) else _where(error, roots)
    return _brief(error) + where + advice_on(error)


def where_in(error: BaseException, made: Any) -> str:
    """Return the file and line at which the code of a user's class or function raised an error, in parentheses."""
    try:
        file = inspect.getsourcefile(made)
    except (OSError, TypeError):
        return ""
    return "" if file is None or "site-packages" in file else _where(error, _roots(Path(file)))


def _where(error: BaseException, roots: list[Path]) -> str:
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if _owned(frame.filename, roots)]
    return f" ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""


def advice_on(error: BaseException) -> str:
    """Return what an error of a stranger's code means for the user: another package, a GPU, an older torch."""
    text = str(error)
    if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith("torch."):
        return "; it was written for another version of torch"
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"; pip install {distribution(error.name.partition('.')[0])}"
    if isinstance(error, AttributeError) and "module 'torch" in text:
        return "; it was written for another version of torch"
    if type(error) is SyntaxError:  # not one of indentation
        return f"; it may be written for another Python than this, {sys.version_info[0]}.{sys.version_info[1]}"
    if "CUDA" in text or "NVIDIA" in text:
        return "; it needs a GPU, and this machine has none"
    return ""


def _brief(error: BaseException) -> str:
    if isinstance(error, UserError):
        return str(error)
    line = f" (line {error.lineno})" if isinstance(error, SyntaxError) and error.lineno else ""
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {' '.join(str(message).split())[:300]}{line}"
