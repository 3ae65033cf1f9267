"""Findings that somebody has looked at and accepted, each with a reason.

In the source, on one of the finding's lines or on a line of its own above it:

    data = pl.store(own, [0, 0], data)  # a2a3sim: ok race - both ranks write the same bytes

or in a TOML file, where ``line`` or ``source`` (a part of the line's text) says which of the file's lines:

    [[suppress]]
    kind = "race"
    file = "kernels/mesh.py"
    source = "pl.store(own"
    reason = "both ranks write the same bytes"
"""

from __future__ import annotations

import io
import re
import tokenize
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from a2a3sim.errors import ConfigError
from a2a3sim.result import Finding, FindingSite
from a2a3sim.run.delays import same_file
from a2a3sim.units import nearest

__all__ = ["ACCEPTABLE", "Suppression", "Suppressions", "in_file", "in_source"]

# Findings that end a run, and wrong numbers, cannot be talked away.
ACCEPTABLE = (
    "race",
    "early-release",
    "unfenced",
    "lost-credit",
    "overshoot",
    "out-of-bounds",
    "alignment",
    "line-share",
    "uninitialised",
    "residue",
    "performance",
)

_MARK = re.compile(r"#\s*a2a3sim:\s*(.*)$")
_RULE = re.compile(r"ok\s+(?P<kinds>[\w-]+(?:\s*,\s*[\w-]+)*)\s+-+\s+(?P<reason>\S.*)")
_FORM = "# a2a3sim: ok KIND - reason"
_KEYS = ("kind", "file", "line", "source", "reason")


@dataclass(eq=False)
class Suppression:
    """One accepted finding.

    Attributes:
        lines: of the file; None for all that contain ``source``.
        origin: where it is written.
        used: it has silenced something.
    """

    kind: str
    file: str
    lines: range | None
    source: str | None
    reason: str
    origin: str
    used: bool = False

    def fits(self, finding: Finding) -> bool:
        """Whether it speaks of this finding."""
        return finding.kind == self.kind and any(self._covers(site) for site in finding.sites)

    def _covers(self, site: FindingSite) -> bool:
        return (
            same_file(site.file, self.file)
            and (self.lines is None or site.line in self.lines)
            and (self.source is None or self.source in site.source)
        )


class Suppressions:
    """What is accepted in one session, and what of it was of use.

    Args:
        rules: those of files; those in the source are found by the findings' lines.
    """

    def __init__(self, rules: Iterable[Suppression] = ()) -> None:
        self._rules = list(rules)
        self._sources: dict[str, list[Suppression]] = {}

    def apply(self, findings: Iterable[Finding]) -> list[Finding]:
        """The findings, the accepted ones with the reason.

        Raises:
            ConfigError: a suppression in the source of one of them is malformed or has no reason.
        """
        return [self._marked(finding) for finding in findings]

    def _marked(self, finding: Finding) -> Finding:
        rules = [*self._rules, *(rule for site in finding.sites for rule in self._of(site.file))]
        fitting = [rule for rule in rules if rule.fits(finding)]
        for rule in fitting:
            rule.used = True
        return finding.model_copy(update={"suppressed": fitting[0].reason}) if fitting else finding

    def _of(self, file: str) -> list[Suppression]:
        found = self._sources.get(file)
        if found is None:
            found = self._sources[file] = in_source(file)
        return found

    def unused(self, files: Iterable[str] = ()) -> list[Suppression]:
        """Those that silenced nothing, of files and of the source files named.

        Raises:
            ConfigError: one in these source files is malformed or has no reason.
        """
        for file in files:
            self._of(file)
        every = [*self._rules, *(rule for rules in self._sources.values() for rule in rules)]
        return [rule for rule in every if not rule.used]


def _checked(kind: str, origin: str) -> str:
    if kind not in ACCEPTABLE:
        raise ConfigError(
            f"{origin}: a suppression's kind must be one of {', '.join(ACCEPTABLE)}, "
            f"got {kind!r}{nearest(kind, ACCEPTABLE)}"
        )
    return kind


def in_source(file: str) -> list[Suppression]:
    """The suppressions in the comments of a Python file; none where it cannot be read.

    Raises:
        ConfigError: a malformed one, or one without a reason.
    """
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return []
    if "a2a3sim:" not in text:
        return []
    return list(_from_comments(file, text))


def _from_comments(file: str, text: str) -> Iterator[Suppression]:
    pending: list[tuple[int, str]] = []  # comments whose statement has not ended yet
    first = None
    skipped = (tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER)
    for token in _tokens(text):
        if token.type == tokenize.COMMENT:
            mark = _MARK.match(token.string)
            if mark:
                pending.append((token.start[0], mark[1].strip()))
        elif token.type == tokenize.NEWLINE:
            for line, said in pending:
                yield from _parsed(file, line, said, range(min(first or line, line), token.start[0] + 1))
            pending, first = [], None
        elif token.type not in skipped and first is None:
            first = token.start[0]
    for line, said in pending:
        yield from _parsed(file, line, said, range(line, line + 1))


def _tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    """A file's tokens, as far as they make sense."""
    try:
        yield from tokenize.generate_tokens(io.StringIO(text).readline)
    except (tokenize.TokenError, SyntaxError):
        return


def _parsed(file: str, line: int, said: str, lines: range) -> Iterator[Suppression]:
    origin = f"{file}:{line}"
    rule = _RULE.fullmatch(said)
    if rule is None:
        known = re.match(r"ok\s+[\w-]+(\s*,\s*[\w-]+)*(\s+-*)?$", said)
        what = "a suppression must give its reason" if known else "a suppression must look like this"
        raise ConfigError(f"{origin}: {what}: {_FORM}, got {said!r}")
    for kind in re.split(r"\s*,\s*", rule["kinds"]):
        yield Suppression(_checked(kind, origin), file, lines, None, rule["reason"].strip(), origin)


def in_file(path: str) -> list[Suppression]:
    """The suppressions of a TOML file.

    Raises:
        ConfigError: it cannot be read, or an entry is malformed or has no reason.
    """
    try:
        data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"--suppress: {path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"--suppress: {path} is no TOML: {error}") from None
    entries = data.pop("suppress", [])
    if data or not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
        raise ConfigError(
            f"--suppress: {path} must hold [[suppress]] tables only, got {', '.join(data) or 'others'}"
        )
    return [_entry(path, number, entry) for number, entry in enumerate(entries, 1)]


def _entry(path: str, number: int, entry: dict[str, Any]) -> Suppression:
    origin = f"{path}, suppression {number}"
    for key in entry:
        if key not in _KEYS:
            raise ConfigError(
                f"{origin}: unknown key {key!r}{nearest(key, _KEYS)}; it has {', '.join(_KEYS)}"
            )
    for key in ("kind", "file", "reason"):
        value = entry.get(key)
        if not isinstance(value, str) or not value.strip():
            why = (
                "a suppression must give its reason"
                if key == "reason"
                else f"a suppression must name its {key}"
            )
            raise ConfigError(f"{origin}: {why}, got {value!r}")
    line, source = entry.get("line"), entry.get("source")
    if line is None and source is None:
        raise ConfigError(
            f"{origin}: a suppression must say which line: line = 42, or source = a part of its text"
        )
    if line is not None and (isinstance(line, bool) or not isinstance(line, int) or line < 1):
        raise ConfigError(f"{origin}: line must be a number from 1, got {line!r}")
    if source is not None and (not isinstance(source, str) or not source.strip()):
        raise ConfigError(f"{origin}: source must be a part of the line's text, got {source!r}")
    lines = None if line is None else range(line, line + 1)
    return Suppression(
        _checked(entry["kind"], origin), entry["file"], lines, source, entry["reason"].strip(), origin
    )
