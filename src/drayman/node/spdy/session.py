"""One end of a connection: which streams there are, what may be sent, and what has been received. Bytes go in, and bytes come out.

Windows: at most so many bytes are sent as the other end has room for. The implementation that Kubernetes' clients and kubelets use knows no
windows; it never says that it has room, and would be waited for in vain. So windows count once the other end has spoken of them, in
settings or by enlarging one. This end speaks of them first thing, and does not insist that they are kept: what is received without being
consumed is limited by whoever reads the connection.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from drayman.node.spdy.errors import SpdyError
from drayman.node.spdy.frames import (
    INITIAL_WINDOW,
    LAST_STREAM,
    Data,
    Frame,
    FrameReader,
    GoAway,
    Headers,
    Ping,
    RstStream,
    Settings,
    SynReply,
    SynStream,
    WindowUpdate,
    encoded,
)
from drayman.node.spdy.headers import HeaderReader, HeaderWriter

WINDOW: Final = 64 * 1024
MOST_STREAMS: Final = 1000
"""Open at a time. A forwarded connection has two of them."""

PROTOCOL_ERROR: Final = 1
INVALID_STREAM: Final = 2
REFUSED_STREAM: Final = 3
CANCEL: Final = 5
FLOW_CONTROL_ERROR: Final = 7
STREAM_ALREADY_CLOSED: Final = 9


@dataclass(frozen=True, slots=True)
class Opened:
    """The other end wants a stream. It is to be accepted or reset."""

    stream: int
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Accepted:
    """The other end has accepted a stream."""

    stream: int


@dataclass(frozen=True, slots=True)
class Received:
    stream: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Ended:
    """The other end sends nothing more on the stream."""

    stream: int


@dataclass(frozen=True, slots=True)
class Broken:
    """A stream is over before its end."""

    stream: int
    status: int


Event = Opened | Accepted | Received | Ended | Broken


@dataclass(slots=True)
class _Stream:
    window: int
    """Bytes that may be sent."""
    consumed: int = 0
    """Bytes that were received and consumed, and of which the other end does not know."""
    is_near_open: bool = True
    is_far_open: bool = True


class Session:
    """The client opens streams with odd numbers, the server with even ones."""

    def __init__(self, *, is_client: bool) -> None:
        self._reader = FrameReader()
        self._headers_in = HeaderReader()
        self._headers_out = HeaderWriter()
        self._streams: dict[int, _Stream] = {}
        self._own = 1 if is_client else 0
        self._next = 1 if is_client else 2
        self._last_far = 0
        self._has_windows = False
        self._window = WINDOW
        self._initial = WINDOW
        self._consumed = 0
        self._out = bytearray(encoded(Settings(((INITIAL_WINDOW, WINDOW),))))
        self.is_leaving = False
        """Whether the other end opens no more streams, and wants no new ones."""

    def __len__(self) -> int:
        return len(self._streams)

    def __contains__(self, number: int) -> bool:
        """Whether a stream is open in at least one direction."""
        return number in self._streams

    @property
    def pending(self) -> int:
        """How many bytes are to be sent."""
        return len(self._out)

    def release(self) -> None:
        """The connection is over: forget what has arrived and what would have been sent."""
        self._out.clear()
        self._streams.clear()
        self._reader = FrameReader()

    def take(self) -> bytes:
        """The bytes that are to be sent."""
        taken = bytes(self._out)
        self._out.clear()
        return taken

    # --- Sending -------------------------------------------------------------------------------

    def open(self, headers: Mapping[str, str]) -> int:
        """A new stream. Raises SpdyError if there can be none."""
        if len(self._streams) >= MOST_STREAMS or self._next > LAST_STREAM or self.is_leaving:
            raise SpdyError("there can be no more streams")
        number, self._next = self._next, self._next + 2
        self._streams[number] = _Stream(self._initial)
        self._send(SynStream(number, self._headers_out.block(headers)))
        return number

    def accept(self, number: int) -> None:
        """Agree to a stream that the other end has opened."""
        if number in self._streams:
            self._send(SynReply(number, self._headers_out.block({})))

    def room(self, number: int) -> int:
        """Bytes that may be sent on a stream now; 0 also for one that is over."""
        stream = self._streams.get(number)
        if stream is None or not stream.is_near_open:
            return 0
        return max(0, min(stream.window, self._window)) if self._has_windows else WINDOW

    def is_open(self, number: int) -> bool:
        """Whether something may be sent on a stream, now or later."""
        stream = self._streams.get(number)
        return stream is not None and stream.is_near_open

    def send(self, number: int, data: bytes) -> None:
        """Data for which there is room."""
        stream = self._streams[number]
        stream.window -= len(data)
        self._window -= len(data)
        self._send(Data(number, data))

    def end(self, number: int) -> None:
        """Nothing more is sent on a stream."""
        stream = self._streams.get(number)
        if stream is not None and stream.is_near_open:
            stream.is_near_open = False
            self._send(Data(number, b"", fin=True))
            self._drop_if_over(number, stream)

    def reset(self, number: int, status: int = CANCEL) -> None:
        """End a stream in both directions."""
        if self._streams.pop(number, None) is not None:
            self._send(RstStream(number, status))

    def leave(self, status: int = 0) -> None:
        """Say that the connection ends."""
        self._send(GoAway(self._last_far, status))

    def consumed(self, number: int, count: int) -> None:
        """So many received bytes do not wait any more. The other end is told every half window."""
        self._consumed += count
        if self._consumed >= WINDOW // 2:
            self._send(WindowUpdate(0, self._consumed))
            self._consumed = 0
        stream = self._streams.get(number)
        if stream is not None and stream.is_far_open:
            stream.consumed += count
            if stream.consumed >= WINDOW // 2:
                self._send(WindowUpdate(number, stream.consumed))
                stream.consumed = 0

    def _send(self, frame: Frame) -> None:
        self._out += encoded(frame)

    # --- Receiving -----------------------------------------------------------------------------

    def receive(self, data: bytes) -> list[Event]:
        """What the bytes mean. Answers that need no decision are ready to be sent. Raises SpdyError."""
        events: list[Event] = []
        for frame in self._reader.feed(data):
            self._receive_frame(frame, events)
        return events

    def _receive_frame(self, frame: Frame, events: list[Event]) -> None:
        match frame:
            case Data():
                self._receive_data(frame, events)
            case SynStream():
                self._receive_opening(frame, events)
            case SynReply(number, block, fin) | Headers(number, block, fin):
                self._headers_in.headers(block)  # of no interest, but what follows builds upon it
                if number in self._streams:
                    if isinstance(frame, SynReply):
                        events.append(Accepted(number))
                    if fin:
                        self._end_far(number, events)
            case RstStream(number, status):
                if self._streams.pop(number, None) is not None:
                    events.append(Broken(number, status))
            case Settings(values):
                self._receive_settings(values)
            case WindowUpdate(number, delta):
                self._receive_room(number, delta, events)
            case Ping(number):
                if number % 2 != self._own:
                    self._send(frame)
            case GoAway():
                self.is_leaving = True

    def _receive_opening(self, frame: SynStream, events: list[Event]) -> None:
        number = frame.stream
        if number % 2 == self._own or number <= self._last_far:
            raise SpdyError(f"stream {number} cannot be opened after {self._last_far}")
        headers = self._headers_in.headers(frame.block)
        self._last_far = number
        if len(self._streams) >= MOST_STREAMS:
            self._send(RstStream(number, REFUSED_STREAM))
            return
        self._streams[number] = _Stream(self._initial)
        events.append(Opened(number, headers))
        if frame.fin:
            self._end_far(number, events)

    def _receive_data(self, frame: Data, events: list[Event]) -> None:
        number, stream = frame.stream, self._streams.get(frame.stream)
        if stream is None:
            self.consumed(number, len(frame.data))
            is_known = number < self._next if number % 2 == self._own else number <= self._last_far
            if not is_known:
                self._send(RstStream(number, INVALID_STREAM))
            return  # what was on its way when the stream was reset
        if not stream.is_far_open:
            self.consumed(number, len(frame.data))
            self.reset(number, STREAM_ALREADY_CLOSED)
            events.append(Broken(number, STREAM_ALREADY_CLOSED))
            return
        if frame.data:
            events.append(Received(number, frame.data))
        if frame.fin:
            self._end_far(number, events)

    def _end_far(self, number: int, events: list[Event]) -> None:
        stream = self._streams[number]
        if stream.is_far_open:
            stream.is_far_open = False
            events.append(Ended(number))
            self._drop_if_over(number, stream)

    def _drop_if_over(self, number: int, stream: _Stream) -> None:
        if not stream.is_near_open and not stream.is_far_open:
            del self._streams[number]

    def _receive_settings(self, values: tuple[tuple[int, int], ...]) -> None:
        initial = dict(values).get(INITIAL_WINDOW)
        if initial is None:
            return
        if initial > LAST_STREAM:
            raise SpdyError(f"a window has {initial} bytes")
        self._has_windows = True
        for stream in self._streams.values():
            stream.window += initial - self._initial
        self._initial = initial

    def _receive_room(self, number: int, delta: int, events: list[Event]) -> None:
        self._has_windows = True
        if number == 0:
            self._window += delta
            if self._window > LAST_STREAM:
                raise SpdyError("the window of the connection is too large")
        elif (stream := self._streams.get(number)) is not None:
            stream.window += delta
            if stream.window > LAST_STREAM:
                self.reset(number, FLOW_CONTROL_ERROR)
                events.append(Broken(number, FLOW_CONTROL_ERROR))
