"""The law of groups, written again: a callback runs once, when all its members have ended, and not before.

Dependencies are taken from the items as they were sent; nothing is counted here.
"""

from __future__ import annotations

from random import Random

from msgspec.structs import replace

from duetime.protocol.command import Cancel, Command, Tick
from duetime.protocol.intent import ACKED, BLOCKED, FINAL, Item, Status, Ties, member_id
from duetime.protocol.record import Record
from duetime.protocol.terms import AfterOn
from duetime.testing.sim.observed import Seen


def grow(random: Random, groups: GroupLaw, item: Item, first: Item) -> list[Item]:
    """What a caller sends for groups: a new callback with some members, or more members for a waiting one."""
    waiting = [id for id, members in groups.members.items() if groups.open(id)]
    items: list[Item] = []
    if waiting and random.random() < 0.6:
        group = random.choice(waiting)
        number = len(groups.members[group])
        more = random.randint(1, groups.sizes[group] - number + random.choice((0, 0, 0, 1)))
    else:
        group, number = first.id, 0
        size = random.randint(1, 5)
        items.append(replace(first, ties=Ties(members=size), after=(), key=None))
        more = random.choice((size, size, random.randint(0, size)))
    number += random.choice((0,) * 20 + (1, -1))  # some callers lose count, or repeat themselves
    for each in range(max(0, number), number + more):
        inner = random.choice((0,) * 9 + (1,))
        after = () if inner else item.after
        ties = Ties(group=group, members=inner)
        items.append(replace(item, id=member_id(group, each), ties=ties, key=None, after=after))
    return items


class GroupLaw:
    """Every group, and which intents wait for which."""

    def __init__(self, seen: dict[str, Seen]) -> None:
        self._seen = seen
        self.sizes: dict[str, int] = {}
        self.members: dict[str, dict[str, None]] = {}
        """By group: its members, in order."""
        self._went: set[str] = set()
        self._unneeded: set[str] = set()
        """Intents that waited for a failure that did not come, and those that waited for them."""
        self._tree: set[str] = set()
        """Intents that may end with a cancelled tree, and those of them that must."""
        self._sure: set[str] = set()

    def made(self, item: Item) -> None:
        """An intent was created."""
        ties = item.ties
        self.sizes.pop(item.id, None)
        self.members.pop(item.id, None)
        self._went.discard(item.id)
        self._unneeded.discard(item.id)
        if ties is None:
            return
        if ties.members:
            self.sizes[item.id], self.members[item.id] = ties.members, {}
        if ties.group is not None:
            members = self.members[ties.group]
            assert len(members) < self.sizes[ties.group], f"{item.id!r} is one too many"
            assert item.id == member_id(ties.group, len(members)), f"{item.id!r} joined out of order"
            assert self._seen[ties.group].status in (None, BLOCKED), f"{item.id!r} joined when all was over"
            members[item.id] = None

    def knows(self, item: Item) -> bool:
        """Whether it was created before as this very part of a group."""
        ties, seen = item.ties, self._seen[item.id]
        if ties is None or seen.fingerprint != item.fingerprint:
            return False
        return (
            self.sizes.get(item.id) == ties.members
            if ties.members
            else item.id in self.members[ties.group or ""]
        )

    def open(self, id: str) -> bool:
        """Whether a group waits for more members."""
        return self._seen[id].status is BLOCKED and len(self.members[id]) < self.sizes[id]

    def unfilled(self) -> list[str]:
        """The groups that wait for members that were never sent."""
        return [id for id in self.sizes if self.open(id)]

    def root(self, random: Random) -> str | None:
        """An intent that others depend on."""
        waited = [id for each in self._seen.values() for id in each.after]
        found = [*waited, *self.members, *(id for members in self.members.values() for id in members)]
        return random.choice(found) if found else None

    def goes_on(self, seen: Seen, at_ms: int) -> None:
        """A blocked intent is released: everything it waited for has ended in an allowed way."""
        waited = self._waited(seen)
        seen.given = [(id, self._seen[id].result) for id in waited]
        seen.failed = {id for id in waited if self._failed(id)}
        if seen.delay_ms:
            execute_at_ms = max(seen.execute_at_ms, at_ms + seen.delay_ms)
            seen.execute_at_ms = min(execute_at_ms, seen.deadline_ms or execute_at_ms)
        if seen.after_on is AfterOn.FAILURE:
            assert seen.failed, f"{seen.id!r} goes on, and none of {waited} has failed"
            return
        for parent in seen.after:
            status, ends = self._seen[parent].status, self._seen[parent].ends
            fits = ends > 0 if seen.after_on is AfterOn.END else status is ACKED
            assert fits, f"{seen.id!r} goes on, and {parent!r} is {status}"
        if seen.id not in self.sizes:
            return
        assert seen.id not in self._went, f"the callback {seen.id!r} goes on twice"
        self._went.add(seen.id)
        members = self.members[seen.id]
        assert len(members) == self.sizes[seen.id], f"{seen.id!r} goes on with {len(members)} members"
        for member in members:
            member_status = self._seen[member].status
            fits = member_status in FINAL if seen.after_on is AfterOn.END else member_status is ACKED
            assert fits, f"the callback {seen.id!r} goes on, and {member!r} is {member_status}"

    def may_die(self, seen: Seen) -> bool:
        """Whether one of its parents ended in a way that must end it too."""
        if seen.after_on is not AfterOn.SUCCESS:
            return False
        return any(
            self._seen[id].ends and self._seen[id].status is not ACKED and id not in self._unneeded
            for id in self._waited(seen)
        )

    def _waited(self, seen: Seen) -> tuple[str, ...]:
        """The intents that it waits for, in order."""
        return tuple(self.members[seen.id]) if seen.id in self.sizes else seen.after

    def _failed(self, id: str) -> bool:
        status = self._seen[id].status
        return status in FINAL and status is not ACKED and id not in self._unneeded

    def unneeded(self, seen: Seen, command: Command) -> bool:
        """Whether it ends because all it waited for succeeded, or because one of them is not needed."""
        waited = self._waited(seen)
        if seen.after_on is AfterOn.FAILURE:
            ended = [self._seen[id].status is ACKED or id in self._unneeded for id in waited]
            found = bool(ended) and all(ended)
        else:
            found = seen.after_on is AfterOn.SUCCESS and any(id in self._unneeded for id in waited)
        if found and not self._said(seen.id, command):
            self._unneeded.add(seen.id)
            return True
        return False

    def _said(self, id: str, command: Command) -> bool:
        return (isinstance(command, Cancel) and command.id == id) or id in self._tree

    def begin(self, record: Record) -> None:
        """Before a record's changes are checked: find the dependents of an intent cancelled with its tree."""
        command = record.command
        root = command.id if isinstance(command, Cancel) and command.tree else None
        self._tree = self._below(root, sure=False) if root is not None else set()
        self._sure = self._below(root, sure=True) if root is not None else set()

    def check_canceled(self, id: str, command: Command) -> None:
        """It, or an intent it depends on, was cancelled by a caller; or by the next tick of its schedule."""
        assert self._said(id, command) or (isinstance(command, Tick) and id.startswith(f"{command.id}@")), (
            f"{id!r} was cancelled"
        )

    def _below(self, root: str, *, sure: bool) -> set[str]:
        """Its dependents, or possible ones. An intent that waits for one that had ended came after its
        revival; an intent that waits for nothing any more depends on it only if it waited."""
        found, todo = {root}, [root]
        while todo:
            id = todo.pop()
            waiting = [
                each.id
                for each in self._seen.values()
                if id in each.after and not (sure and (each.status is not BLOCKED or self._seen[id].ends))
            ]
            for below in (*waiting, *self.members.get(id, ())):
                if below not in found:
                    found.add(below)
                    todo.append(below)
        return found

    def check(self, record: Record, refused: bool) -> None:
        """After a record: no intent waits for an ended one, and no intent of a cancelled tree is live."""
        for id, members in self.members.items():
            if self._seen[id].status is BLOCKED and len(members) == self.sizes[id]:
                live = [each for each in members if self._seen[each].status not in FINAL]
                assert live, f"the callback {id!r} is stuck: all of its members have ended"
        if self._sure and not refused:
            live = sorted(id for id in self._sure if id in self._seen and self._lives(id))
            assert not live, f"{live} live, and hang on {record.command!r}"

    def _lives(self, id: str) -> bool:
        status: Status | None = self._seen[id].status
        return status not in FINAL
