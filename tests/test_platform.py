"""Platform files: shipped machines, derived ones, overrides, hashes, and errors that name the nearest key."""

import pickle
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a3sim.errors import ConfigError
from a2a3sim.experiments import platforms
from a2a3sim.models.platform import list_platforms, load_platform
from a2a3sim.units import cycles_ps

SHIPPED = ("a2", "a3", "ideal", "ideal-switch")
EVIDENCE = (
    "assumed", "derived", "pto-isa", "simpler", "CANN", "ascend-dmi", "memfabric", "UBEP", "hicann/shmem",
    "PyPTO", "Ascend C", "CloudMatrix", "architecture 220", "Atlas A2", "link.bandwidth", "full mesh", "910B",
    "unified bus",
)  # fmt: skip


def fails(*arguments):
    with pytest.raises(ConfigError) as caught:
        load_platform(*arguments)
    return str(caught.value)


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_shipped_machines():
    assert list_platforms() == SHIPPED


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_parameter_has_a_meaning_and_a_source(name):
    for parameter in load_platform(name).parameters():
        assert parameter.meaning and parameter.unit and parameter.value, parameter
        assert any(word in parameter.source for word in EVIDENCE), parameter


def test_a2_values():
    a2 = load_platform("a2")
    assert (a2.name, a2.topology.kind, a2.topology.devices) == ("a2", "full_mesh", 8)
    assert (a2.core.clock, a2.core.count, a2.ub.usable) == (1_850_000_000, 48, 184 * 1024)
    assert (a2.link.bandwidth, a2.link.latency) == (26_200_000_000, 270_000)
    assert a2.pipe.rate == 155_400_000_000  # 84 B x 1.85 GHz
    assert (a2.hbm.bandwidth, a2.hbm.latency, a2.port.egress) == (1_538_000_000_000, 310_000, None)
    assert (a2.launch.device, a2.launch.device_per_core, a2.launch.dispatch) == (
        2_500_000,
        130_000,
        8_080_000,
    )
    assert (a2.signal.atomic, a2.signal.poll, a2.signal.line, a2.signal.issue) == (20_000, 41_000, 512, 280)
    assert (a2.align.row, a2.align.line, a2.efficiency.read) == (32, 64, 1)
    assert a2.atomic.dtypes == ("fp32", "bf16", "fp16", "int32", "int16", "int8")


def test_a3_derives_from_a2_and_differs_in_its_fabric():
    a2, a3 = load_platform("a2"), load_platform("a3")
    assert (a3.topology.devices, a3.planes, a3.spread) == (16, 7, "all")
    assert (a3.efficiency.read, a3.efficiency.write) == (Fraction(17, 20), Fraction(7, 10))
    assert (a3.sio.bandwidth, a3.sio.latency) == (187_000_000_000, 109_000)
    assert (a3.vector, a3.ub, a3.launch) == (a2.vector, a2.ub, a2.launch)


def test_ideal_charges_for_links_only():
    ideal = load_platform("ideal")
    assert (ideal.topology.devices, ideal.core.count, ideal.ub.usable, ideal.pipe.rate) == (None,) * 4
    assert (ideal.link.bandwidth, ideal.link.latency) == (25_000_000_000, 1_000_000)
    assert ideal.vector.cycles("add", "fp32", 1 << 20) == 0
    assert (
        ideal.core.issue,
        ideal.hbm.latency,
        ideal.signal.atomic,
        ideal.signal.poll,
        ideal.launch.skew,
    ) == (0,) * 5
    assert (ideal.pipe.moves_in_flight, ideal.kernel.cores, ideal.kernel.tile) == (1, 1, None)


def test_vector_costs_by_hand():
    a2 = load_platform("a2")
    # 16 KiB are 64 repeats: 24 + 2.11 x 64; profiled: 160
    assert a2.vector.cycles("add", "fp32", 16_384) == Fraction(15_904, 100)
    assert a2.vector.cycles("add", "fp16", 8_192) == Fraction(9_152, 100)  # profiled: 92
    assert a2.vector.cycles("add", "fp32", 1) == Fraction(2_611, 100)  # a part of a repeat is one
    assert (
        cycles_ps(a2.vector.cycles("add", "fp32", 1), a2.core.clock) == 14_114
    )  # 26.11 / 1.85 GHz = 14113.51 ps
    # int32 has a slope of its own and the instruction's start-up
    assert a2.vector.cost("add", "int32") == (24, Fraction(198, 100))
    # no entry for the instruction: the machine's default
    assert a2.vector.cost("sqrt", "fp32") == a2.vector.cost("unheard_of", "fp32") == (24, Fraction(211, 100))


def test_bf16_arithmetic_is_priced_as_conversions_around_fp32():
    a2 = load_platform("a2")
    # a bf16 repeat is two in fp32: 3 casts of 32 + 2 x 2, an add of 24 + 2 x 2.11
    assert a2.vector.cost("add", "bf16") == (3 * 32 + 24, 3 * 4 + Fraction(422, 100))
    assert a2.vector.cost("muls", "bf16") == (2 * 32 + 26, 2 * 4 + 2)  # one tile operand
    assert a2.vector.cost("cast", "bf16") == a2.vector.cost("cast", "fp32")
    assert a2.vector.cost("copy", "bf16") == a2.vector.cost("copy", "fp32")
    own = load_platform("a2", {"vector.add.bf16.slope": "3"})
    assert own.vector.cost("add", "bf16") == (120, 3)
    assert a2.vector.supports("bf16") and a2.vector.supports("fp32") and not a2.vector.supports("int64")


@given(
    st.sampled_from(["add", "mul", "cast", "exp"]), st.sampled_from(["fp32", "bf16"]), st.integers(1, 10**6)
)
@settings(max_examples=50)
def test_vector_time_is_the_exact_cost_rounded_up_once(instr, dtype, nbytes):
    a2 = load_platform("a2")
    cycles = a2.vector.cycles(instr, dtype, nbytes)
    assert 0 <= cycles_ps(cycles, a2.core.clock) - cycles * 10**12 / 1_850_000_000 < 1


def test_overrides():
    a2 = load_platform("a2", {
        "link.bandwidth": "10GB/s",
        "link.3-5.bandwidth": "5GB/s",
        "port.2.egress": "50GB/s",
        "vector.add.fp32.slope": "2",
        "planes": "1",
    })  # fmt: skip
    assert a2.link.bandwidth == 10_000_000_000
    assert a2.link.between["3-5"].bandwidth == 5_000_000_000
    assert a2.link.between["3-5"].latency is None
    assert a2.port.of["2"].egress == 50_000_000_000
    assert a2.vector.cost("add", "fp32") == (24, 2)
    shown = {p.key: p for p in a2.parameters()}
    assert (shown["link.3-5.bandwidth"].value, shown["link.3-5.bandwidth"].source) == ("5GB/s", "override")
    assert "link.3-5.latency" not in shown


def test_a_rate_in_bytes_per_cycle_follows_an_overridden_clock():
    assert load_platform("a2", {"core.clock": "1GHz"}).pipe.rate == 84_000_000_000


def test_unlimited():
    a2 = load_platform("a2", {"hbm.bandwidth": "unlimited", "topology.devices": "any", "align.row": "none"})
    assert (a2.hbm.bandwidth, a2.topology.devices, a2.align.row) == (None, None, None)


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("link.bandwith", "'link.bandwidth'"),
        ("lnk.bandwidth", "'link.bandwidth'"),
        ("bandwidth", "'hbm.bandwidth' or 'link.bandwidth' or 'sio.bandwidth'"),
        ("plane", "'planes'"),
        ("link.3-5.bandwith", "'link.3-5.bandwidth'"),
        ("link.03-5.bandwidth", "'link.bandwidth'"),
        ("port.2.egres", "'port.2.egress'"),
        ("vector.ad.fp32.slope", "'vector.add.fp32.slope'"),
        ("vector.add.fp31.slope", "'vector.add.fp32.slope'"),
        ("vector.add.slope", "'vector.add.default.slope'"),
        ("launch.skw", "'launch.skew'"),
    ],
)
def test_unknown_keys_name_the_nearest(key, nearest):
    message = fails("a2", {key: "1"})
    assert f"got {key!r}" in message and f"did you mean {nearest}?" in message


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"link.bandwidth": "10"}, "link.bandwidth: a rate needs a unit, got '10': say 25GB/s"),
        ({"link.bandwidth": "0"}, "link.bandwidth must be above 0 (or 'unlimited'), got '0'"),
        ({"link.latency": "unlimited"}, "link.latency: a time must be a number with a unit"),
        ({"launch.skew": "1"}, "launch.skew: a time needs a unit"),
        ({"efficiency.read": "120%"}, "efficiency.read must be at most 1, got '120%'"),
        ({"spread": "al"}, "spread must be one of pair, all, got 'al' (did you mean 'all'?)"),
        ({"topology.kind": "mesh"}, "(did you mean 'full_mesh'?)"),
        ({"vector.native": "fp32, f16"}, "got 'f16' (did you mean 'fp16'?)"),
        ({"vector.native": "bf16"}, "vector.emulated must differ from vector.native"),
        ({"core.clock": "1850"}, "core.clock: a frequency needs a unit"),
        ({"ub.reserved": "192KiB"}, "ub.reserved must be below ub.size"),
        ({"kernel.cores": "64"}, "kernel.cores must be at most core.count 48, got 64"),
        ({"planes": "3"}, "planes must be 1 on a full_mesh"),
        ({"planes": 3}, "value of planes must be a text with its unit, got 3"),
        ({"link.3-9.bandwidth": "5GB/s"}, "devices are 0..7), got no link from 3 to 9"),
        ({"link.3-3.latency": "1us"}, "got no link from 3 to 3"),
        ({"link.3-ub.latency": "1us"}, "got no link from 3 to ub"),
        ({"port.8.egress": "1GB/s"}, "port.8 must name a device of platform a2 (devices are 0..7)"),
        ({"sio.latency": "1us"}, "sio.latency must not be set on platform a2: it has no SIO"),
    ],
)
def test_impossible_values(overrides, message):
    assert message in fails("a2", overrides)


def test_every_fault_is_told():
    message = fails("a2", {"link.bandwidth": "10", "ub.size": "5"})
    assert "link.bandwidth" in message and "ub.size" in message


def test_unknown_platforms():
    assert "did you mean 'ideal-switch'?" in fails("ideal-swich")
    assert "platform file must exist, got 'no/such.toml'" in fails("no/such.toml")


def test_a_derived_machine_inherits_values_and_sources(tmp_path):
    path = write(tmp_path, "mine.toml", """
        base = "a2"
        title = "mine"
        [core]
        clock = { value = "1.8GHz", source = "910B3" }
        [link."3-5"]
        bandwidth = { value = "13.1GB/s", source = "assumed: half of its lanes" }
        [vector.add.fp32]
        slope = { value = "2", source = "mine" }
    """)  # fmt: skip
    mine, a2 = load_platform(path), load_platform("a2")
    assert (mine.name, mine.title, mine.core.clock) == ("mine", "mine", 1_800_000_000)
    assert mine.pipe.rate == 151_200_000_000  # 84 B x 1.8 GHz
    sources = {p.key: p.source for p in mine.parameters()}
    assert sources["core.clock"] == "910B3"
    assert sources["link.latency"] == {p.key: p.source for p in a2.parameters()}["link.latency"]
    assert mine.vector.cost("add", "fp32") == (24, 2)
    further = write(tmp_path, "further.toml", 'base = "mine.toml"\n[planes]\nvalue = "1"\nsource = "same"')
    assert load_platform(str(further)).link.between == mine.link.between


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'base = "a2"\n[link]\nlatency = "1us"',
            'link.latency must be { value = "...", source = "..." }, got \'1us\'',
        ),
        ('base = "a2"\n[link]\nlatency = { value = "1us" }', "source of link.latency must be a text"),
        (
            'base = "a2"\n[link]\nlatency = { value = 1, source = "x" }',
            "value of link.latency must be a text",
        ),
        (
            'base = "a2"\n[link]\nlatency = { value = "1us", source = " " }',
            "source of link.latency must be a text",
        ),
        ('base = "a2"\n[link]\nlatency = { value = "1us", source = "x", unit = "s" }', "got 'unit'"),
        ('base = "a2"\n[link]\nlatancy = { value = "1us", source = "x" }', "did you mean 'link.latency'?"),
        ('base = "a4"', "platform must be one of"),
        ("base = 2", "base must be a text, got 2"),
        ('base = "mine.toml"', "base must not lead back"),
        ('base = "a2"\n[link', "platform file must be TOML"),
        ('title = "x"\n[link]\nlatency = { value = "1us", source = "x" }', "got none for topology.kind"),
    ],
)
def test_faults_of_a_file_name_it(tmp_path, text, message):
    path = write(tmp_path, "mine.toml", text)
    told = fails(path)
    assert message in told and "mine" in told


def test_the_hash_covers_values_and_nothing_else(tmp_path):
    a2 = load_platform("a2")
    assert len(a2.hash) == 12 and a2.hash == load_platform("a2").hash
    same = write(
        tmp_path,
        "same.toml",
        'base = "a2"\ntitle = "x"\n[link]\nlatency = { value = "0.27us", source = "y" }',
    )
    assert load_platform(same).hash == a2.hash
    assert load_platform("a2", {"pipe.rate": "155.4GB/s"}).hash == a2.hash
    assert len({load_platform(name).hash for name in SHIPPED}) == 4


def changed(parameter):
    """Another legal value of a parameter."""
    if parameter.key == "topology.kind":
        return "ring"
    if parameter.key == "topology.switch":
        return "other"
    if parameter.key == "spread":
        return "all"
    if parameter.key == "planes":
        return None  # 1 is the only value on a full mesh
    values = {
        "ps": "77ns", "B": "9KiB", "B/s": "7GB/s", "Hz": "2GHz", "cycles": "7", "count": "25", "share": "50%",
        "dtypes": "int8",
    }  # fmt: skip
    return values[parameter.unit]


def test_the_hash_changes_with_every_value():
    hashes = {load_platform("a2").hash}
    tried = 0
    for parameter in load_platform("a2").parameters():
        value = changed(parameter)
        if value is None or parameter.key.startswith("sio."):
            continue
        tried += 1
        hashes.add(load_platform("a2", {parameter.key: value}).hash)
    assert tried > 70 and len(hashes) == tried + 1


def test_a_machine_is_frozen_and_travels():
    a3 = load_platform("a3", {"link.0-ub.latency": "1us"})
    with pytest.raises(ValueError, match="frozen"):
        a3.link.latency = 1
    back = pickle.loads(pickle.dumps(a3))
    assert back == a3 and back.hash == a3.hash and list(back.parameters()) == list(a3.parameters())
    assert a3 != load_platform("a3") and len({a3, back, load_platform("a3")}) == 2


@pytest.mark.parametrize("name", SHIPPED)
def test_the_shown_values_make_the_same_machine(name):
    platform = load_platform(name)
    shown = {p.key: p.value.split(" (")[0] for p in platform.parameters() if not p.key.startswith("sio.")}
    assert load_platform(name, shown).hash == platform.hash


def test_rows_for_programs():
    head = platforms.report("a3")
    assert (head["schema"], head["command"], head["platform"]) == ("a2a3sim.report/1", "platforms", "a3")
    row = next(row for row in head["rows"] if row["key"] == "efficiency.read")
    assert (row["value"], row["resolved"], row["unit"]) == ("85%", "17/20", "share")
    machines = {row["name"]: row for row in platforms.rows()}
    assert (machines["a3"]["link_bandwidth"], machines["a3"]["latency_ps"]) == (196_000_000_000, 464_500)


def test_tables_for_people(capsys):
    platforms.describe()
    listed = capsys.readouterr().out
    assert all(sum(line.split()[:1] == [name] for line in listed.splitlines()) == 1 for name in SHIPPED)
    platforms.describe("a2")
    assert "launch.device_per_core" in capsys.readouterr().out


def test_the_documentation_is_up_to_date(tmp_path):
    page = Path(__file__).parents[1] / "docs" / "platforms.md"
    copy = write(tmp_path, "platforms.md", page.read_text(encoding="utf-8"))
    platforms.update(copy)
    assert copy.read_text(encoding="utf-8") == page.read_text(encoding="utf-8")


def test_the_documented_example_is_a_machine(tmp_path):
    page = (Path(__file__).parents[1] / "docs" / "platforms.md").read_text(encoding="utf-8")
    example = page.split("```toml\n")[1].split("```")[0]
    mine = load_platform(write(tmp_path, "my910b3.toml", example))
    assert (mine.core.count, mine.link.between["3-5"].bandwidth) == (40, 13_100_000_000)
