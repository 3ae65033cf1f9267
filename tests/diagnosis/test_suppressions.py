"""Findings that somebody has accepted, with a reason; and what is no acceptance."""

import pytest
from running import altered
from running import script as run

from a2a3sim import ConfigError
from a2a3sim.checks.suppressions import Suppressions, in_file, in_source
from a2a3sim.result import Finding, FindingSite

from .programs import ONE_ROW, TWO_PHASE

ALL = "0,1,2,3"
STORE = "result = pl.store(acc, [0, my_rank * chunk], result)"


def found(kind="race", file="prog.py", line=3, source="y = pl.store(t, [0, 0], y)"):
    sites = [
        FindingSite(file=file, line=line, source=source),
        FindingSite(file=file, line=90, source="other"),
    ]
    return Finding(kind=kind, severity="error", sites=sites, message="m")


def source(tmp_path, text):
    path = tmp_path / "prog.py"
    path.write_text(text)
    return str(path)


def test_a_comment_covers_its_statement(tmp_path):
    (rule,) = in_source(
        source(tmp_path, "a = 1\nb = f(\n    1,\n)  # a2a3sim: ok race - both write the same\nc = 2\n")
    )
    assert (rule.kind, rule.reason, list(rule.lines)) == ("race", "both write the same", [2, 3, 4])


def test_a_comment_of_its_own_covers_the_next_statement(tmp_path):
    (rule,) = in_source(
        source(tmp_path, "if x:\n    # a2a3sim: ok residue - the host resets it\n    b = 2\nc = 3\n")
    )
    assert list(rule.lines) == [2, 3]


def test_a_comment_may_name_several_kinds(tmp_path):
    rules = in_source(
        source(tmp_path, "a = 1  # a2a3sim: ok race, early-release - tested by hand - see notes\n")
    )
    assert [(r.kind, r.reason) for r in rules] == [
        ("race", "tested by hand - see notes"),
        ("early-release", "tested by hand - see notes"),
    ]


@pytest.mark.parametrize(
    ("comment", "says"),
    [
        ("ok race", "must give its reason"),
        ("ok race -", "must give its reason"),
        ("okay race - because", "must look like this"),
        ("ok rase - because", "did you mean 'race'"),
        ("ok deadlock - because", "must be one of"),
        ("ok mismatch - because", "must be one of"),
    ],
)
def test_a_comment_without_reason_or_kind_is_an_error(tmp_path, comment, says):
    with pytest.raises(ConfigError, match=says) as caught:
        in_source(source(tmp_path, f"\na = 1  # a2a3sim: {comment}\n"))
    assert "prog.py:2" in str(caught.value)


def test_strings_are_no_comments(tmp_path):
    assert in_source(source(tmp_path, 'a = "# a2a3sim: ok race"\n')) == []


ENTRY = (
    '[[suppress]]\nkind = "race"\nfile = "prog.py"\nsource = "pl.store("\nreason = "the bytes are equal"\n'
)


def test_a_file_names_lines_by_number_or_text(tmp_path):
    path = tmp_path / "accepted.toml"
    path.write_text(ENTRY)
    (rule,) = in_file(str(path))
    assert rule.fits(found()) and rule.fits(found(file="/work/prog.py"))
    assert not rule.fits(found(kind="early-release"))
    assert not rule.fits(found(source="y = pl.load(t)"))
    assert not rule.fits(found(file="other.py"))
    path.write_text(ENTRY.replace('source = "pl.store("', "line = 3"))
    assert in_file(str(path))[0].fits(found())


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('reason = "the bytes are equal"\n', "", "must give its reason"),
        ('"the bytes are equal"', '"  "', "must give its reason"),
        ('source = "pl.store("\n', "", "must say which line"),
        ('kind = "race"', 'kind = "rase"', "did you mean 'race'"),
        ("source =", "sauce =", "did you mean 'source'"),
        ("[[suppress]]", "[[supress]]", "only"),
        ('source = "pl.store("', "line = 0", "from 1"),
        ("[[suppress]]", "[[suppress", "no TOML"),
    ],
)
def test_a_malformed_file_is_an_error(tmp_path, old, new, says):
    path = tmp_path / "accepted.toml"
    path.write_text(ENTRY.replace(old, new))
    with pytest.raises(ConfigError, match=says):
        in_file(str(path))


def test_a_missing_file_is_an_error():
    with pytest.raises(ConfigError, match="cannot be read"):
        in_file("/nowhere/accepted.toml")


def test_accepted_findings_keep_their_reason_and_no_longer_count(tmp_path):
    path = tmp_path / "accepted.toml"
    path.write_text(ENTRY + ENTRY.replace("prog.py", "unused.py"))
    accepted = Suppressions(in_file(str(path)))
    race, other = accepted.apply([found(), found(kind="early-release")])
    assert (race.suppressed, race.counts) == ("the bytes are equal", False)
    assert (other.suppressed, other.counts) == (None, True)
    assert [rule.file for rule in accepted.unused()] == ["unused.py"]


def test_a_run_reads_the_comments_of_its_program(tmp_path):
    comment = STORE + "  # a2a3sim: ok race, early-release - only to see the report"
    path = altered(tmp_path, TWO_PHASE, *ONE_ROW, (STORE, comment))
    (result,) = run(path, "-d", ALL).runs
    states = {f.kind: f.suppressed for f in result.findings}
    assert states["race"] == "only to see the report"
    assert states["early-release"] is None  # none of its lines is the store
    assert not result.ok
    assert '"suppressed":"only to see the report"' in result.to_json()
