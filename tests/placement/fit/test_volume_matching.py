"""Which volume fits a claim, and where."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.api.quantity import Quantity
from drayman.api.storage import PersistentVolume, PersistentVolumeClaim
from drayman.api.volume_binding import is_set_aside, reserved_for
from drayman.placement.fit.volume_matching import Mismatch, candidates, mismatch, reaches
from placement.fit.objects import facts
from placement.fit.storage import HOST, at, claim, meant_for, volume

HOSTS = ("n1", "n2", "n3")

CASES: dict[str, tuple[PersistentVolume, PersistentVolumeClaim, Mismatch | None]] = {
    "of the right size": (volume(), claim(), None),
    "larger": (volume(size="1Ti"), claim(), None),
    "smaller": (volume(size="9Gi"), claim(), Mismatch.TOO_SMALL),
    "of another class": (volume(storageClassName="other"), claim(), Mismatch.OTHER_CLASS),
    "without a class, for one without": (
        volume(storageClassName=""),
        claim(storageClassName=""),
        None,
    ),
    "for blocks": (volume(volumeMode="Block"), claim(), Mismatch.OTHER_MODE),
    "for blocks, wanted as such": (volume(volumeMode="Block"), claim(volumeMode="Block"), None),
    "read by many, written by one": (
        volume(accessModes=["ReadWriteOnce"]),
        claim(accessModes=["ReadWriteOnce", "ReadOnlyMany"]),
        Mismatch.ACCESS,
    ),
    "can do more than is wanted": (
        volume(accessModes=["ReadWriteOnce", "ReadWriteMany"]),
        claim(),
        None,
    ),
    "selected": (
        volume(labels={"tier": "fast"}),
        claim(selector={"matchLabels": {"tier": "fast"}}),
        None,
    ),
    "not selected": (
        volume(),
        claim(selector={"matchLabels": {"tier": "fast"}}),
        Mismatch.NOT_SELECTED,
    ),
    "being deleted": (volume(deleted=True), claim(), Mismatch.DELETED),
    "not made known as available": (volume(phase="Pending"), claim(), Mismatch.NOT_READY),
    "released and not wiped": (
        volume(phase="Released", claimRef=meant_for("data", "gone")),
        claim(),
        Mismatch.TAKEN,
    ),
    "somebody else's": (volume(claimRef=meant_for("other")), claim(), Mismatch.TAKEN),
    "set aside for a claim of that name": (volume(claimRef=meant_for("data")), claim(), None),
    "set aside in another namespace": (
        volume(claimRef=meant_for("data", namespace="prod")),
        claim(),
        Mismatch.TAKEN,
    ),
    "set aside, and of another class": (
        volume(claimRef=meant_for("data"), storageClassName="other"),
        claim(),
        None,
    ),
    "set aside, and too small": (
        volume(size="1Gi", claimRef=meant_for("data")),
        claim(),
        Mismatch.TOO_SMALL,
    ),
}


@pytest.mark.parametrize(("given_volume", "wanting", "why"), CASES.values(), ids=CASES)
def test_a_volume_fits_or_it_is_said_why_not(
    given_volume: PersistentVolume, wanting: PersistentVolumeClaim, why: Mismatch | None
) -> None:
    """Class, size, mode, access, selector and who has it decide about a volume."""
    assert mismatch(wanting, given_volume) is why
    assert (candidates(wanting, [given_volume]).first() is None) is (why is not None)


def test_one_that_is_set_aside_rules_out_the_others() -> None:
    """Where it cannot be reached there is none for the claim, though others would fit."""
    meant = volume("meant", size="1Ti", host="n1", claimRef=meant_for("data"))
    found = candidates(claim(), [volume("small"), meant])
    assert found.on(facts("n1", labels={HOST: "n1"})) is meant
    assert found.on(facts("n2", labels={HOST: "n2"})) is None
    assert found.first() is meant


PLACES: Any = st.one_of(
    st.none(),
    st.lists(st.sampled_from(HOSTS), min_size=1, max_size=2, unique=True).map(lambda h: at(*h)),
    st.sampled_from(("a", "b")).map(lambda zone: at(zone, key="zone")),
    st.just({"required": {"nodeSelectorTerms": []}}),
)


@st.composite
def _volumes(draw: st.DrawFn) -> list[PersistentVolume]:
    made = []
    for number in range(draw(st.integers(0, 8))):
        spec: dict[str, Any] = {"nodeAffinity": draw(PLACES)}
        if draw(st.integers(0, 5)) == 0:
            spec["claimRef"] = meant_for(draw(st.sampled_from(("data", "other"))))
        size = draw(st.sampled_from(("5Gi", "10Gi", "20Gi", "30Gi")))
        made.append(volume(f"v{number}", size, **spec))
    return made


@given(_volumes(), st.sampled_from(HOSTS), st.sampled_from(("a", "b")), st.booleans())
def test_the_smallest_that_fits_and_can_be_reached(
    volumes: list[PersistentVolume], host: str, zone: str, without_best: bool
) -> None:
    """Filing volumes by their host finds what looking at each of them does."""
    wanting, node = claim(), facts(host, labels={HOST: host, "zone": zone})
    fitting = [v for v in volumes if mismatch(wanting, v) is None]

    def size(each: PersistentVolume) -> tuple[Quantity, str]:
        return each.spec.capacity["storage"], each.metadata.name

    meant = sorted((v for v in fitting if is_set_aside(v, wanting)), key=size)

    reached = sorted((v for v in meant[:1] or fitting if reaches(v, node)), key=size)
    found = candidates(wanting, volumes)
    assert found.on(node) is (reached[0] if reached else None)
    expected = meant[0] if meant else min(fitting, key=size, default=None)
    assert found.first() is expected
    if without_best and reached:
        promised = {reached[0].metadata.name}
        assert found.on(node, promised) is (reached[1] if len(reached) > 1 else None)


@given(_volumes())
def test_what_is_reserved_is_nobody_elses(volumes: list[PersistentVolume]) -> None:
    """A volume in which a claim was entered is the claim's alone, and entering it again changes nothing."""
    wanting, rival = claim(), claim("rival", size="1Gi")
    best = candidates(wanting, volumes).first()
    if best is None:
        return
    taken = reserved_for(best, wanting)
    assert reserved_for(taken, wanting) is taken
    assert mismatch(rival, taken) is Mismatch.TAKEN
    others = [v for v in volumes if v is not best]
    assert candidates(wanting, [*others, taken]).first() is taken
