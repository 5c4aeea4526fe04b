"""Worlds: tasks whose true graph is known, so that what is learned from their demonstrations can be judged.

The household worlds, such as "Make Coffee", are the twelve tasks of the paper's ProceL experiments, written from how
the tasks work. Names and numbers of steps are the paper's (a–l); steps and preconditions are not: those graphs were
never published. A precondition says what must be done for the step to be possible or safe, not what people happen to do
first. Alternatives (`either`) are ways of which a demonstration takes one. The worlds stay as they are, whatever a
method makes of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TypeAlias

from msg2.errors import InputError
from msg2.graph import Formula, SubtaskGraph, all_of, any_of, step
from msg2.task import Step
from msg2.text import short_repr


@dataclass(frozen=True)
class World:
    """A task with its true graph; preconditions are made of AND and OR only, so any one branch of an OR will do.

    >>> from msg2.graph import any_of, step
    >>> coffee = SubtaskGraph("coffee", ["pour", "grind", "open"], {"pour": any_of([step("grind"), step("open")])})
    >>> World(coffee).goals
    frozenset({'pour'})
    """

    graph: SubtaskGraph

    def __post_init__(self) -> None:
        for name, formula in self.graph.preconditions.items():
            if "not" in formula.kinds:
                what = f"the precondition of {short_repr(name)} in the world {short_repr(self.name)} has a NOT"
                hint = "a world knows AND and OR only: every step of it can be done sooner or later"
                raise InputError(what, hint=hint)

    @property
    def name(self) -> str:
        """The name of the task."""
        return self.graph.task

    @cached_property
    def goals(self) -> frozenset[Step]:
        """The steps that no other step needs: every demonstration means to do all of them."""
        return frozenset(name for name in self.graph.steps if not self.children[name])

    @cached_property
    def children(self) -> Mapping[Step, tuple[Step, ...]]:
        """For each step the steps whose precondition speaks of it, in the order of the graph."""
        steps, parents = self.graph.steps, self.graph.parents
        return {parent: tuple(name for name in steps if parent in parents(name)) for parent in steps}


_Needs: TypeAlias = Sequence[Step | Formula]


def either(*steps: Step) -> Formula:
    """Return the formula that any one of `steps` makes true."""
    return any_of(step(name) for name in steps)


_HOUSEHOLD: Mapping[str, Mapping[Step, _Needs]] = {
    "Assemble Clarinet": {
        "open case": [],
        "moisten reed in mouth": ["open case"],
        "soak reed in water": ["open case"],
        "grease corks": ["open case"],
        "take out lower joint": ["open case"],
        "take out upper joint": ["open case"],
        "slide ligature onto mouthpiece": ["open case"],
        "press upper ring keys": ["take out upper joint"],
        "attach bell": ["grease corks", "take out lower joint"],
        "attach barrel": ["grease corks", "take out upper joint"],
        "attach mouthpiece": ["grease corks"],
        "join upper and lower joints": ["grease corks", "take out lower joint", "press upper ring keys"],
        "align bridge keys": ["join upper and lower joints"],
        "place reed": [either("moisten reed in mouth", "soak reed in water")],
        "tighten ligature screws": ["place reed", "slide ligature onto mouthpiece"],
        "play test note": [
            "attach bell", "attach barrel", "attach mouthpiece", "align bridge keys", "tighten ligature screws",
        ],
    },
    "Change Tire": {
        "park on level ground": [],
        "apply parking brake": ["park on level ground"],
        "place wheel chocks": ["park on level ground"],
        "get spare tire": ["park on level ground"],
        "get jack": ["park on level ground"],
        "remove hubcap": ["park on level ground"],
        "loosen lug nuts": ["remove hubcap"],
        "position jack": ["get jack"],
        "raise car": ["position jack", "loosen lug nuts", either("apply parking brake", "place wheel chocks")],
        "remove lug nuts": ["raise car"],
        "remove flat tire": ["remove lug nuts"],
        "mount spare tire": ["remove flat tire", "get spare tire"],
        "hand-tighten lug nuts": ["mount spare tire"],
        "lower car": ["hand-tighten lug nuts"],
        "tighten lug nuts": ["lower car"],
        "check tire pressure": ["lower car"],
        "replace hubcap": ["tighten lug nuts"],
        "put tools away": ["tighten lug nuts"],
    },
    "Perform CPR": {
        "check scene safety": [],
        "check responsiveness": ["check scene safety"],
        "call emergency services": ["check responsiveness"],
        "send bystander to call": ["check responsiveness"],
        "tilt head back": ["check responsiveness"],
        "check breathing": ["tilt head back"],
        "give chest compressions": ["check breathing", either("call emergency services", "send bystander to call")],
        "give rescue breaths": ["give chest compressions"],
    },
    "Setup Chromecast": {
        "unpack Chromecast": [],
        "plug into HDMI port": ["unpack Chromecast"],
        "connect power cable": ["unpack Chromecast"],
        "power from TV USB port": ["connect power cable"],
        "power from wall adapter": ["connect power cable"],
        "turn on TV": [],
        "select HDMI input": ["turn on TV", "plug into HDMI port"],
        "install app": [],
        "start setup in app": ["install app", either("power from TV USB port", "power from wall adapter")],
        "confirm code on screen": ["start setup in app", "select HDMI input"],
        "choose Wi-Fi network": ["confirm code on screen"],
        "cast video": ["choose Wi-Fi network"],
    },
    "Change Toilet Seat": {
        "measure bowl": [],
        "buy new seat": ["measure bowl"],
        "unpack new seat": ["buy new seat"],
        "attach bumpers": ["unpack new seat"],
        "attach hinges": ["unpack new seat"],
        "pry open bolt covers": [],
        "hold nuts with pliers": [],
        "loosen nuts with wrench": [],
        "unscrew bolts with screwdriver": ["pry open bolt covers", "hold nuts with pliers"],
        "saw through bolts": ["pry open bolt covers"],
        "pull out old bolts": [
            either("loosen nuts with wrench", "unscrew bolts with screwdriver", "saw through bolts"),
        ],
        "lift off old seat": ["pull out old bolts"],
        "discard old seat": ["lift off old seat"],
        "clean around bolt holes": ["lift off old seat"],
        "position new seat": ["clean around bolt holes", "attach hinges"],
        "insert new bolts": ["position new seat"],
        "thread nuts onto bolts": ["insert new bolts"],
        "align seat with bowl": ["thread nuts onto bolts"],
        "tighten nuts": ["align seat with bowl"],
        "close bolt covers": ["tighten nuts"],
        "test seat": ["tighten nuts", "attach bumpers"],
    },
    "Make Peanut Butter and Jelly Sandwich": {
        "lay out bread": [],
        "open peanut butter jar": [],
        "scoop peanut butter": ["open peanut butter jar"],
        "spread peanut butter": ["scoop peanut butter", "lay out bread"],
        "open jelly jar": [],
        "scoop jelly": ["open jelly jar"],
        "squeeze jelly from bottle": ["lay out bread"],
        "spread jelly": ["lay out bread", either("scoop jelly", "squeeze jelly from bottle")],
        "put slices together": ["spread peanut butter", "spread jelly"],
        "cut sandwich": ["put slices together"],
    },
    "Jump Car": {
        "park cars close together": [],
        "turn off both engines": ["park cars close together"],
        "open hoods": ["park cars close together"],
        "find battery terminals": ["open hoods"],
        "get jumper cables": [],
        "connect red to dead battery": ["get jumper cables", "find battery terminals", "turn off both engines"],
        "connect red to good battery": ["get jumper cables", "find battery terminals", "turn off both engines"],
        "connect black to good battery": ["connect red to dead battery", "connect red to good battery"],
        "connect black to bare metal": ["connect black to good battery"],
        "connect black to dead battery": ["connect black to good battery"],
        "start good car": [either("connect black to bare metal", "connect black to dead battery")],
        "let battery charge": ["start good car"],
        "start dead car": ["let battery charge"],
        "remove cables": ["start dead car"],
    },
    # The OR is the choice of knot: straight across is the four-in-hand, over the neck loop the half Windsor.
    "Tie Tie": {
        "button top button": [],
        "flip up collar": [],
        "drape tie around neck": ["flip up collar"],
        "lower wide end": ["drape tie around neck"],
        "cross wide end over narrow end": ["lower wide end"],
        "wrap wide end behind": ["cross wide end over narrow end"],
        "wrap straight across front": ["wrap wide end behind"],
        "pull wide end over neck loop": ["wrap wide end behind"],
        "wrap across front from neck loop": ["pull wide end over neck loop"],
        "push wide end up under neck loop": [
            either("wrap straight across front", "wrap across front from neck loop"),
        ],
        "pull wide end down through knot": ["push wide end up under neck loop"],
        "tighten knot": ["pull wide end down through knot"],
        "slide knot up to collar": ["tighten knot", "button top button"],
        "fold down collar": ["slide knot up to collar"],
    },
    "Change iPhone Battery": {
        "power off phone": [],
        "remove bottom screws": ["power off phone"],
        "warm edge with hair dryer": ["power off phone"],
        "warm edge with heat pad": ["power off phone"],
        "lift screen with suction cup": [
            "remove bottom screws", either("warm edge with hair dryer", "warm edge with heat pad"),
        ],
        "remove connector bracket": ["lift screen with suction cup"],
        "disconnect battery": ["remove connector bracket"],
        "pull adhesive strips": ["disconnect battery"],
        "lift out old battery": ["pull adhesive strips"],
        "stick adhesive on new battery": [],
        "insert new battery": ["lift out old battery", "stick adhesive on new battery"],
        "connect new battery": ["insert new battery"],
        "close screen": ["connect new battery"],
        "reinstall bottom screws": ["close screen"],
    },
    "Make Coffee": {
        "fill kettle": [],
        "boil water in kettle": ["fill kettle"],
        "heat water in microwave": [],
        "grind beans": [],
        "open ground coffee": [],
        "put filter in dripper": [],
        "set dripper on mug": [],
        "add coffee to filter": ["put filter in dripper", either("grind beans", "open ground coffee")],
        "wet the grounds": [
            "add coffee to filter", "set dripper on mug", either("boil water in kettle", "heat water in microwave"),
        ],
        "pour remaining water": ["wet the grounds"],
        "remove dripper": ["pour remaining water"],
        "stir in milk": ["remove dripper"],
    },
    "Repot Plant": {
        "choose larger pot": [],
        "cover drainage hole": ["choose larger pot"],
        "add soil to new pot": ["cover drainage hole"],
        "cut around root ball": [],
        "tap sides of old pot": [],
        "slide plant out": [either("cut around root ball", "tap sides of old pot")],
        "tease roots apart": ["slide plant out"],
        "set plant in new pot": ["tease roots apart", "add soil to new pot"],
        "fill in soil": ["set plant in new pot"],
        "water plant": ["fill in soil"],
    },
    "Make Salmon Sandwich": {
        "toast bread": [],
        "season salmon fillet": [],
        "fry salmon fillet": ["season salmon fillet"],
        "open canned salmon": [],
        "flake salmon": [either("fry salmon fillet", "open canned salmon")],
        "mix in mayonnaise": ["flake salmon"],
        "spread salmon on bread": ["mix in mayonnaise", "toast bread"],
        "add lettuce": ["toast bread"],
        "close sandwich": ["spread salmon on bread", "add lettuce"],
    },
}  # fmt: skip


@cache
def household_worlds() -> tuple[World, ...]:
    """Return the twelve household worlds, in the paper's order (a) to (l).

    >>> [len(w.graph.steps) for w in household_worlds()]
    [16, 18, 8, 12, 21, 10, 14, 14, 14, 12, 10, 9]
    """
    return tuple(World(_graph(name, needs)) for name, needs in _HOUSEHOLD.items())


def household_world(name: str) -> World:
    """Return the household world called `name`, in any case.

    >>> str(household_world("repot plant").graph.precondition("slide plant out"))
    'cut around root ball | tap sides of old pot'
    """
    for candidate in household_worlds():
        if candidate.name.casefold() == name.strip().casefold():
            return candidate
    known = ", ".join(candidate.name for candidate in household_worlds())
    raise InputError(f"there is no world called {short_repr(name)}", hint=f"the worlds are: {known}")


def _graph(name: str, needs: Mapping[Step, _Needs]) -> SubtaskGraph:
    preconditions = {
        after: all_of(step(before) if isinstance(before, str) else before for before in befores)
        for after, befores in needs.items()
    }
    return SubtaskGraph(name, needs, preconditions)
