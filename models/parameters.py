"""The schema of a machine: every parameter with its meaning and the kind of value it has.

Reading and writing of values is in ``quantities``, checks between parameters in ``platform``.
"""

from fractions import Fraction
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from a2a3sim.models.quantities import (
    DTYPES,
    INSTRUCTIONS,
    AnyNumber,
    Bytes,
    Clock,
    Count,
    Cycles,
    Dtypes,
    Number,
    Rate,
    Room,
    Rule,
    Share,
    Size,
    SomeCycles,
    SomeTime,
    Time,
    Unit,
    Word,
)  # fmt: skip

__all__ = [
    "AlignSection", "AtomicSection", "BetweenSection", "CoreSection", "CostSection", "EfficiencySection",
    "HbmSection", "KernelSection", "LaunchSection", "LinkSection", "PipeSection", "Planes", "PortOfSection",
    "PortSection", "Section", "SignalSection", "SioSection", "Spread", "TopologySection", "UbSection",
    "VectorSection",
]  # fmt: skip

Kind = Literal["full_mesh", "ring", "switch", "paired_switch"]


class Section(BaseModel):
    """A group of parameters; frozen, and closed to unknown names."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, arbitrary_types_allowed=True)


class TopologySection(Section):
    kind: Annotated[Kind, Unit("choice", str)] = Field(
        description="full_mesh: a link for every ordered pair; ring: links to both neighbours; switch: "
        "links to and from a switch; paired_switch: a switch, and an SIO between devices 2i and 2i+1"
    )
    devices: AnyNumber = Field(description="devices of the machine; 'any': as many as a run asks for")
    switch: Word = Field(description="name of the switch in link names (unused without one)")


class CoreSection(Section):
    clock: Clock = Field(description="clock of a core; costs in cycles are converted with it")
    count: Number = Field(description="vector cores (AIV) of a device")
    issue: Cycles = Field(description="time of the scalar pipe to issue one operation to its pipe")
    wait: Cycles = Field(description="time of the scalar pipe for the poll with which a wait succeeds")
    sync: Time = Field(
        description="barrier over the blocks of one kernel on one device, after the last arrives"
    )


class UbSection(Section):
    size: Room = Field(description="unified buffer of a core")
    reserved: Bytes = Field(description="part of it that the compiler keeps for itself")

    @property
    def usable(self) -> int | None:
        """Bytes a program may hold in tiles; None if unlimited."""
        return None if self.size is None else self.size - self.reserved


class PipeSection(Section):
    moves_in_flight: Number = Field(description="moves of one MTE pipe that may be in flight at a time")
    rate: Rate = Field(
        description="what one MTE pipe can carry ('B/cycle' counts core cycles); bounds a flow"
    )
    queue: Number = Field(description="operations a pipe's queue holds before the scalar pipe has to wait")


class CostSection(Section):
    """One entry of the vector cost table; a missing half falls back (`VectorSection`'s ``cost``)."""

    startup: SomeCycles = Field(default=None, description="fixed part of the instruction's cost")
    slope: SomeCycles = Field(default=None, description="cost of each repeat of the instruction")


class VectorSection(Section):
    """Costs of the vector pipe: start-up + slope x repeats."""

    repeat: Size = Field(description="bytes that one repeat of a vector instruction covers")
    native: Dtypes = Field(description="element types the vector unit calculates in")
    emulated: Dtypes = Field(
        description="element types it only converts: operands are cast to fp32, the result back"
    )
    table: dict[str, dict[str, CostSection]]

    def supports(self, dtype: str) -> bool:
        """Whether arithmetic on ``dtype`` exists, natively or through fp32."""
        return dtype in self.native or dtype in self.emulated

    def cost(self, instr: str, dtype: str) -> tuple[Fraction, Fraction]:
        """(start-up, slope) in cycles: the entry for the dtype, the instruction's, the machine's default.

        An element type that the unit emulates and that has no entry of its own is the sum of what is run
        instead: a cast to fp32 for each tile operand, the instruction in fp32, a cast back. Casts, copies
        and fills calculate nothing and are priced as in any other type.
        """
        row = self.table.get(instr, {})
        if dtype in self.emulated and instr not in ("cast", "copy", "fill"):
            casts = INSTRUCTIONS.get(instr, 2) + 1
            cast, body = self.cost("cast", "fp32"), self.cost(instr, "fp32")
            wider = Fraction(DTYPES["fp32"], DTYPES[dtype])  # fp32 repeats for one of the narrow type
            rest = CostSection(startup=casts * cast[0] + body[0], slope=wider * (casts * cast[1] + body[1]))
            entries = [row.get(dtype), rest]
        else:
            entries = [row.get(dtype), row.get("default"), self.table["default"]["default"]]
        startup = next(entry.startup for entry in entries if entry and entry.startup is not None)
        slope = next(entry.slope for entry in entries if entry and entry.slope is not None)
        return startup, slope

    def cycles(self, instr: str, dtype: str, nbytes: int) -> Fraction:
        """Exact cycles of one instruction over ``nbytes`` of its result (``cast``: of its wider side)."""
        startup, slope = self.cost(instr, dtype)
        return startup + slope * -(-nbytes // self.repeat)


class HbmSection(Section):
    size: Room = Field(description="device memory (HBM) of one device")
    bandwidth: Rate = Field(description="what all accesses to one device's memory share, local and remote")
    latency: Time = Field(
        description="a local access to global memory, from issue to completion, without its bytes"
    )


class BetweenSection(Section):
    """What is special about one link."""

    bandwidth: Rate = Field(default=None, description="bandwidth of this link alone")
    latency: SomeTime = Field(default=None, description="latency of this link alone")


class LinkSection(Section):
    bandwidth: Rate = Field(
        description="bandwidth of one link in one direction (with a switch: of one plane)"
    )
    latency: Time = Field(description="one-way latency of one link (a path through a switch crosses two)")
    between: dict[str, BetweenSection]


class PortOfSection(Section):
    """What is special about the port of one device."""

    egress: Rate = Field(default=None, description="what this device can send to the fabric")
    ingress: Rate = Field(default=None, description="what this device can take from the fabric")


class PortSection(Section):
    egress: Rate = Field(description="what one device can send to the fabric over all its links together")
    ingress: Rate = Field(description="what one device can take from the fabric over all its links together")
    of: dict[str, PortOfSection]


class SioSection(Section):
    bandwidth: Rate = Field(description="payload between the two dies of a package, in one direction")
    latency: Time = Field(description="one-way latency between the two dies of a package")


class EfficiencySection(Section):
    read: Share = Field(description="payload of a remote read as a share of the fabric capacity it occupies")
    write: Share = Field(
        description="payload of a remote write as a share of the fabric capacity it occupies"
    )


class SignalSection(Section):
    atomic: Time = Field(description="time in which a device's signal memory applies one update of a line")
    poll: Time = Field(
        description="interval at which a wait looks at its cell (0: it sees an update at once)"
    )
    line: Size = Field(description="bytes in which updates of signal cells are applied one at a time")
    issue: Cycles = Field(description="time of the scalar pipe to issue one notify")


class AlignSection(Section):
    row: Rule = Field(description="the allocated row of a tile must be a multiple of it; transfers should be")
    line: Rule = Field(description="cache line that a Set or a scalar store writes back whole")


class AtomicSection(Section):
    dtypes: Dtypes = Field(description="element types that a store to global memory can add, local or remote")


class LaunchSection(Section):
    skew: Time = Field(description="width of the interval in which the ranks of a launch start")
    device: Time = Field(description="start of a kernel on a device, without its cores")
    device_per_core: Time = Field(description="additional start-up for each core of the kernel")
    dispatch: Time = Field(description="host time for each dispatch; the ranks' stagger in dispatch launches")
    task: Time = Field(
        description="start of a further kernel by an orchestration that is already on the device"
    )


class KernelSection(Section):
    cores: Count = Field(description="cores that the built-in kernels use if not told otherwise")
    tile: Room = Field(description="largest tile of the built-in kernels ('unlimited': one tile a slice)")


Planes = Annotated[
    Count, Field(description="parallel planes of the switched fabric, a link to each per device")
]
Spread = Annotated[
    Literal["pair", "all"],
    Unit("choice", str),
    Field(
        description="pair: a flow keeps to plane (source + destination) mod planes; all: it is divided "
        "evenly over the planes, which then act as one link of planes x link.bandwidth"
    ),
]
