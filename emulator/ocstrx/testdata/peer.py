#!/usr/bin/python3
"""An independent host of the controller link, over TCP. Usage: peer.py HOST PORT [lossy]

It is written from the documentation of the packages wire/trxlink and wire/cmis/ocst and
from OIF-CMIS-05.2, and shares no code with the emulator or the driver. It wants a board of
eight modules that has just started, and prints one line for each thing that it has found
to be as documented. What is not so ends it with a message and exit code 1. With "lossy"
the line may lose and change bytes, and what is looked at is that each command takes effect
once all the same.
"""

import os
import socket
import struct
import sys
import time

HELLO, READ, WRITE, CDB, TRIGGER, PLATE = range(1, 7)
REPLY = 0x80
BOARD = 0xFF
OK, VERSION, KIND, ARGUMENT, SLOT, NO_MODULE, BUSY, NOT_ARMED, NOT_PRESENT, WANTS_HELLO = range(10)
GAP = 0.020  # s of silence that end a frame
CONTROL, MONITORS, CDB_PAGE = 0xB0, 0xB1, 0x9F
READY, ARMED, LOCKING = 4, 5, 8  # states, B0h:134
NOW, ARM, PULL, DISARM = 1, 2, 3, 4  # B0h:138
DARK, FIBRE1, FIBRE2, LOOP = range(4)
NOTHING_ARMED, BUSY_FAULT, STAGE = 11, 8, 12
MODULES = 8


def crc(data, width, polynomial, value):
    top = 1 << (width - 1)
    for byte in data:
        value ^= byte << (width - 8)
        for _ in range(8):
            value = (value << 1) ^ (polynomial if value & top else 0)
        value &= (1 << width) - 1
    return value


def crc8(data):
    return crc(data, 8, 0x07, 0)


def crc16(data):
    return crc(data, 16, 0x1021, 0xFFFF)


def frame(kind, slot, seq, payload=b"", version=1):
    head = struct.pack(">BBBBH", version, kind, slot, seq, len(payload))
    body = head + bytes([crc8(head)]) + payload
    return b"\xa5\x5a" + body + struct.pack(">H", crc16(body))


class Failed(Exception):
    pass


def check(holds, message):
    if not holds:
        raise Failed(message)


class Link:
    def __init__(self, host, port):
        self.socket = socket.create_connection((host, port), timeout=5)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""
        self.seq = 0

    def close(self):
        self.socket.close()

    def next(self):
        self.seq = (self.seq + 1) & 0xFF
        return self.seq

    def send(self, data):
        self.socket.sendall(data)

    def take(self):
        """Takes one frame out of what was received: (kind, slot, seq, payload) or None."""
        while True:
            start = self.buffer.find(b"\xa5\x5a")
            if start < 0:
                self.buffer = self.buffer[-1:]
                return None
            self.buffer = self.buffer[start:]
            if len(self.buffer) < 9:
                return None
            version, kind, slot, seq, size, check8 = struct.unpack(">BBBBHB", self.buffer[2:9])
            if check8 != crc8(self.buffer[2:8]) or size > 256:
                self.buffer = self.buffer[1:]
                continue
            if len(self.buffer) < 11 + size:
                return None
            (check16,) = struct.unpack(">H", self.buffer[9 + size : 11 + size])
            if check16 != crc16(self.buffer[2 : 9 + size]):
                self.buffer = self.buffer[1:]
                continue
            payload = self.buffer[9 : 9 + size]
            self.buffer = self.buffer[11 + size :]
            check(version == 1, "a reply of version %d" % version)
            return kind, slot, seq, payload

    def receive(self, patience=5.0):
        """Waits for one frame; None if none comes."""
        end = time.monotonic() + patience
        while True:
            got = self.take()
            if got is not None:
                return got
            left = end - time.monotonic()
            if left <= 0:
                return None
            self.socket.settimeout(left)
            try:
                data = self.socket.recv(4096)
            except socket.timeout:
                return None
            check(data, "the board has closed the connection")
            self.buffer += data

    def expect(self, kind, slot, seq):
        """Waits for one reply and returns its code and what follows."""
        got = self.receive()
        check(got is not None, "no reply to kind %02xh of slot %d" % (kind, slot))
        check(got[:3] == (kind | REPLY, slot, seq), "asked for %r, got %r" % ((kind, slot, seq), got))
        check(got[3], "a reply without a code")
        return got[3][0], got[3][1:]

    def ask(self, kind, slot, payload=b""):
        seq = self.next()
        self.send(frame(kind, slot, seq, payload))
        return self.expect(kind, slot, seq)

    def silent(self, seconds, what):
        got = self.receive(seconds)
        check(got is None, "%s: answered with %r" % (what, got))

    # What modules do.

    def read(self, slot, page, offset, count, bank=0):
        code, data = self.ask(READ, slot, bytes([bank, page, offset, count]))
        check(code == OK and len(data) == count, "read %02xh:%d of slot %d: code %d, %d bytes" % (page, offset, slot, code, len(data)))
        return data

    def write(self, slot, page, offset, data, bank=0):
        code, _ = self.ask(WRITE, slot, bytes([bank, page, offset]) + data)
        check(code == OK, "write %02xh:%d of slot %d: code %d" % (page, offset, slot, code))

    def status(self, slot):
        """State, path, result, sequence number and duration (s) of a module."""
        data = self.read(slot, CONTROL, 134, 20)
        state, path, _, _, _, result, sequence, duration = struct.unpack(">BBBBBBII", data[:14])
        return state, path, result, sequence, duration * 10e-9

    def settle(self, slot):
        """Waits until a module is ready."""
        for _ in range(1000):
            status = self.status(slot)
            if status[0] == READY:
                return status
            time.sleep(0.002)
        raise Failed("slot %d stays in state %d" % (slot, status[0]))


def start(link):
    """A board that has just started does nothing before HELLO."""
    before = stage(FIBRE1, 0xFF, NOW)
    code, _ = link.ask(WRITE, 0, bytes([0, CONTROL, 136]) + before)
    check(code == WANTS_HELLO, "before HELLO: code %d" % code)
    code, _ = link.ask(READ, 0, bytes([0, 0, 0, 1]))
    check(code == WANTS_HELLO, "before HELLO: code %d" % code)
    greet_quietly(link)
    check(link.status(0)[3] == 0, "what came before HELLO was done")
    print("start: nothing before hello")


def greet(link):
    chosen = os.urandom(4)
    code, info = link.ask(HELLO, BOARD, chosen)
    check(code == OK, "HELLO: code %d" % code)
    check(info[27:31] == chosen, "HELLO is answered with %r" % info[27:])
    version, slots, features = info[:3]
    serial, firmware = info[3:19], info[19:27]
    check(version == 1 and slots == MODULES, "protocol %d, %d slots" % (version, slots))
    check(features & 1, "no trigger line")
    check(serial.decode("ascii").strip() and firmware.decode("ascii").strip(), "no serial number or firmware")
    print("hello: %d slots, serial %s" % (slots, serial.decode("ascii").strip()))


def identities(link):
    serials = set()
    for slot in range(MODULES):
        lower = link.read(slot, 0, 0, 4)
        check(lower[1] == 0x52, "CMIS %02xh" % lower[1])
        check(lower[3] >> 1 & 7 == 3, "module state %d" % (lower[3] >> 1 & 7))
        page = link.read(slot, 0, 128, 128)
        check(sum(page[:94]) & 0xFF == page[94], "checksum of page 00h")
        serials.add(page[38:54])
        control = link.read(slot, CONTROL, 128, 128)
        check(control[:5] == b"OCST\x01", "magic %r" % control[:5])
        check(control[5] & 0b1100101 == 0b1100101, "capabilities %02xh" % control[5])
        for bank in range(3):
            settings = link.read(slot, 0xB2, 128, 128, bank)
            check(struct.unpack(">H", settings[126:])[0] == crc16(settings[:126]), "CRC of page B2h, bank %d" % bank)
    check(len(serials) == MODULES, "%d serial numbers" % len(serials))
    print("pages: %d modules with checksums" % MODULES)


def codes(link):
    def wants(want, what, kind, slot, payload=b""):
        code, _ = link.ask(kind, slot, payload)
        check(code == want, "%s: code %d, want %d" % (what, code, want))

    wants(KIND, "unknown kind", 0x33, 0)
    wants(SLOT, "slot 8", READ, MODULES, bytes([0, 0, 0, 1]))
    wants(SLOT, "slot of the board in READ", READ, BOARD, bytes([0, 0, 0, 1]))
    wants(SLOT, "trigger of a module", TRIGGER, 0, b"\0\1")
    wants(ARGUMENT, "READ of nothing", READ, 0, bytes([0, CONTROL, 128, 0]))
    wants(ARGUMENT, "READ of 129 bytes", READ, 0, bytes([0, CONTROL, 127, 129]))
    wants(ARGUMENT, "READ beyond the page", READ, 0, bytes([0, CONTROL, 250, 7]))
    wants(ARGUMENT, "READ from lower into upper memory", READ, 0, bytes([0, 0, 120, 16]))
    wants(ARGUMENT, "READ with a byte too many", READ, 0, bytes([0, CONTROL, 128, 1, 0]))
    wants(ARGUMENT, "READ of a page that is not there", READ, 0, bytes([0, 0xEE, 128, 1]))
    wants(ARGUMENT, "READ of a bank that is not there", READ, 0, bytes([7, CONTROL, 128, 1]))
    wants(ARGUMENT, "WRITE of nothing", WRITE, 0, bytes([0, CONTROL, 136]))
    wants(ARGUMENT, "CDB without a command", CDB, 0, b"\x80")
    wants(ARGUMENT, "CDB of 121 bytes", CDB, 0, b"\x80\x01" + bytes(121))
    wants(ARGUMENT, "TRIGGER with one byte", TRIGGER, BOARD, b"\1")
    wants(ARGUMENT, "TRIGGER of none", TRIGGER, BOARD, b"\0\0")
    wants(SLOT, "TRIGGER of slot 8", TRIGGER, BOARD, b"\1\0")
    seq = link.next()
    link.send(frame(READ, 0, seq, bytes([0, 0, 0, 1]), version=9))
    code, _ = link.expect(READ, 0, seq)
    check(code == VERSION, "version 9: code %d" % code)
    print("codes: as documented")


def cdb(link):
    """Commands by the CDB request of the link, and by page 9Fh itself."""
    code, reply = link.ask(CDB, 0, b"\x80\x04")
    check(code == OK and reply[0] == 1 and len(reply) > 1, "CDB 8004h: code %d, status %02xh, %d bytes" % (code, reply[0], len(reply) - 1))
    verification = reply[1:]
    code, reply = link.ask(CDB, 0, b"\x80\x44")
    check(code == OK and reply[0] == 0x41, "unknown CDB command: code %d, status %02xh" % (code, reply[0]))
    code, reply = link.ask(CDB, 0, b"\x80\x05")
    check(code == OK and reply[0] == 0x46, "heater test without a password: code %d, status %02xh" % (code, reply[0]))
    link.write(0, 0, 122, b"\x00\x00\x10\x11")
    code, reply = link.ask(CDB, 0, b"\x80\x05")
    check(code == OK and reply[0] == 1 and reply[1:] == bytes(18), "heater test: code %d, %s" % (code, reply.hex()))

    def by_page(body, apart):
        if apart:  # the command code last: writing it is what starts the command
            link.write(0, CDB_PAGE, 130, body[2:])
            link.write(0, CDB_PAGE, 128, body[:2])
        else:
            link.write(0, CDB_PAGE, 128, body)
        for _ in range(500):
            status = link.read(0, 0, 37, 1)[0]
            if not status & 0x80:
                return status
            time.sleep(0.001)
        raise Failed("CDB stays busy")

    def request(command, payload, spoil=0):
        body = struct.pack(">HHBBBB", command, 0, len(payload), 0, 0, 0) + payload
        return body[:5] + bytes([(~sum(body) & 0xFF) ^ spoil]) + body[6:]

    check(by_page(request(0x8004, b"", spoil=1), False) == 0x45, "a wrong check code was taken")
    status = by_page(request(0x8004, b""), False)
    check(status == 1, "CDB 8004h by page 9Fh: status %02xh" % status)
    head = link.read(0, CDB_PAGE, 134, 2)
    data = link.read(0, CDB_PAGE, 136, head[0])
    check(data == verification, "page 9Fh and the link differ in the reply")
    check(~sum(data) & 0xFF == head[1], "check code of the reply is %02xh" % head[1])
    first = by_page(request(0x8003, bytes([0, 0, 120])), False)
    check(first == 1 and link.read(0, CDB_PAGE, 134, 1)[0] == 120, "table by CDB: status %02xh" % first)
    check(link.read(0, CDB_PAGE, 136, 120) == link.read(0, 0xB7, 128, 120), "table by CDB and by page differ")
    print("cdb: by the link and by page 9Fh, wrong check code refused")


def stage(path, lanes, commit):
    return bytes([path, lanes, commit])


def bundle(link):
    """Arms and triggers eight modules, after a trigger that must not do anything."""
    before = [link.status(slot)[3] for slot in range(MODULES)]
    for slot in range(MODULES):
        if slot != 5:
            link.write(slot, CONTROL, 136, stage(FIBRE2, 0xFF, ARM))
    code, rest = link.ask(TRIGGER, BOARD, b"\x00\xff")
    check(code == NOT_ARMED and rest == b"\x05", "trigger of a half-armed bundle: code %d, slot %r" % (code, rest))
    for slot in range(MODULES):
        state, path, _, sequence, _ = link.status(slot)
        check(sequence == before[slot] and path == DARK, "half-armed, and slot %d went to path %d" % (slot, path))
        check(state == (READY if slot == 5 else ARMED), "half-armed, and slot %d is in state %d" % (slot, state))
    link.write(5, CONTROL, 136, stage(FIBRE2, 0xFF, ARM))
    code, _ = link.ask(TRIGGER, BOARD, b"\x00\xff")
    check(code == OK, "trigger: code %d" % code)
    for slot in range(MODULES):
        _, path, result, sequence, duration = link.settle(slot)
        check(path == FIBRE2 and result == 0, "slot %d: path %d, result %d" % (slot, path, result))
        check(sequence == before[slot] + 1, "slot %d: sequence number %d, was %d" % (slot, sequence, before[slot]))
        check(0 < duration < 1e-3, "slot %d: %g s" % (slot, duration))
        newest = link.read(slot, 0xB3, 128, 16)
        check(struct.unpack(">I", newest[4:8])[0] == sequence, "slot %d: the log lags" % slot)
        out2 = struct.unpack(">8H", link.read(slot, MONITORS, 128, 16))
        out1 = struct.unpack(">8H", link.read(slot, CONTROL, 176, 16))
        check(min(out2) > 1000 and max(out1) * 10 < min(out2), "slot %d: light %r and %r" % (slot, out1, out2))
    code, rest = link.ask(TRIGGER, BOARD, b"\x00\xff")
    check(code == NOT_ARMED and rest == b"\x00", "second trigger: code %d, %r" % (code, rest))
    print("bundle: %d modules armed and triggered at once" % MODULES)


def repeats(link):
    """A reply that is lost: the same bytes again are answered again, and not done again."""
    was = link.settle(0)[3]
    link.write(0, CONTROL, 136, stage(FIBRE1, 0xFF, ARM))
    seq = link.next()
    pull = frame(TRIGGER, BOARD, seq, b"\x00\x01")
    for _ in range(5):
        link.send(pull)
        code, _ = link.expect(TRIGGER, BOARD, seq)
        check(code == OK, "trigger that was repeated: code %d" % code)
    check(link.settle(0)[3] == was + 1, "a repeated trigger took effect again")

    # By CDB, which counts on its own, and with others between.
    seq = link.next()
    switch = frame(CDB, 0, seq, b"\x80\x01" + stage(FIBRE2, 0xFF, NOW))
    replies = []
    for _ in range(3):
        link.send(switch)
        replies.append(link.expect(CDB, 0, seq))
        link.settle(0)
    check(replies[0] == replies[1] == replies[2] and replies[0][0] == OK, "replies to repeats differ: %r" % replies)
    check(replies[0][1][:2] == b"\1\0", "CDB switch: %r" % replies[0][1])
    check(link.status(0)[3] == was + 2, "a repeated CDB command took effect again")

    # Same sequence number, other bytes: a new request.
    link.send(frame(CDB, 0, seq, b"\x80\x01" + stage(FIBRE1, 0xFF, NOW)))
    link.expect(CDB, 0, seq)
    check(link.settle(0)[3] == was + 3, "another request with a used sequence number was not done")

    # HELLO makes the board forget.
    link.send(switch)
    check(link.expect(CDB, 0, seq) == replies[0], "a request within the window was not answered again")
    greet_quietly(link)
    link.send(switch)
    code, reply = link.expect(CDB, 0, seq)
    check(code == OK and link.settle(0)[3] == was + 4, "after HELLO a request was taken for an old one")
    print("repeats: answered again, done once")


def greet_quietly(link):
    seq = link.next()
    hello = frame(HELLO, BOARD, seq, os.urandom(4))
    link.send(hello + hello)
    check(link.expect(HELLO, BOARD, seq) == link.expect(HELLO, BOARD, seq), "two replies to one HELLO differ")


def noise(link):
    ask = bytes([0, CONTROL, 128, 5])

    def alive(what):
        code, data = link.ask(READ, 3, ask)
        check(code == OK and data == b"OCST\x01", "after %s: code %d, %r" % (what, code, data))

    seq = link.next()
    link.send(bytes(range(256)) + b"\xa5" + frame(READ, 3, seq, ask))
    check(link.expect(READ, 3, seq)[0] == OK, "behind garbage")

    # Between two, and two in one piece.
    one, two = link.next(), link.next()
    link.send(frame(READ, 3, one, ask) + b"\xa5\x5a\xa5\x5a\x01" + frame(READ, 4, two, ask))
    link.expect(READ, 3, one)
    link.expect(READ, 4, two)

    # Inside: one wrong byte, one lost, one too many, at every place of a frame.
    good = frame(READ, 3, 200, ask)
    for at in range(len(good)):
        for bad in (
            good[:at] + bytes([good[at] ^ 0x10]) + good[at + 1 :],
            good[:at] + good[at + 1 :],
            good[:at] + bytes([good[at] ^ 0xFF]) + good[at:],
        ):
            # The board may be owed bytes by what was taken for a frame: silence frees it.
            link.send(bad)
            if bad[-len(good) :] != good:  # a byte in front of it is noise before a good frame
                time.sleep(2 * GAP)
            else:
                link.expect(READ, 3, 200)
            alive("a frame spoilt at byte %d" % at)

    # A frame inside what was taken for one: a head that promises 256 bytes.
    head = struct.pack(">BBBBH", 1, WRITE, 0, 9, 256)
    seq = link.next()
    link.send(b"\xa5\x5a" + head + bytes([crc8(head)]) + frame(READ, 3, seq, ask))
    check(link.expect(READ, 3, seq)[0] == OK, "a frame inside of a torn one")

    # Slow, but within the gap.
    seq = link.next()
    for byte in frame(READ, 3, seq, ask):
        link.send(bytes([byte]))
        time.sleep(GAP / 10)
    check(link.expect(READ, 3, seq)[0] == OK, "byte by byte")

    # A reply is no request; nor is what cannot be read answered.
    link.send(frame(READ | REPLY, 3, 77, b"\0"))
    link.send(good[:-1] + bytes([good[-1] ^ 1]))
    link.silent(5 * GAP, "a reply and a frame with a wrong CRC")
    alive("noise")
    print("noise: before, between and inside frames")


def window(link):
    """Eight requests under way are answered in the order in which they came."""
    sent = []
    data = b""
    for slot in range(8):
        seq = link.next()
        sent.append((slot, seq))
        data += frame(READ, slot, seq, bytes([0, CONTROL, 134, 20]))
    link.send(data)
    for slot, seq in sent:
        check(link.expect(READ, slot, seq)[0] == OK, "one of eight")
    print("window: eight under way, in order")


def refusals(link):
    """What a module refuses shows in its result, and changes nothing."""
    before = link.settle(2)
    link.write(2, CONTROL, 136, stage(FIBRE1, 0xFF, PULL))
    result = link.status(2)[2]
    check(result == NOTHING_ARMED, "trigger by register with nothing armed: result %d" % result)
    link.write(2, CONTROL, 136, stage(77, 0xFF, NOW))
    result = link.status(2)[2]
    check(result == STAGE, "path 77: result %d" % result)
    flags = link.read(2, CONTROL, 154, 1)[0]
    check(flags & 0x80, "rejected, and flags are %02xh" % flags)
    check(link.read(2, CONTROL, 154, 1)[0] == 0, "flags are not cleared by reading")
    link.write(2, CONTROL, 136, stage(FIBRE1, 0xFF, ARM))
    check(link.status(2)[0] == ARMED, "not armed")
    link.write(2, CONTROL, 138, bytes([DISARM]))
    after = link.status(2)
    check(after[0] == READY and after[1] == before[1] and after[3] == before[3], "refused, and something changed: %r, %r" % (before, after))
    print("refusals: named, nothing changed")


def lossy(link):
    """Switches to and fro over a line that loses frames: each takes effect once."""

    def ask(kind, slot, payload):
        seq = link.next()
        for _ in range(200):
            link.send(frame(kind, slot, seq, payload))
            end = time.monotonic() + 2 * GAP
            while (left := end - time.monotonic()) > 0:
                got = link.receive(left)
                # Replies to what was asked before, and asked again, may come late.
                if got is not None and got[:3] == (kind | REPLY, slot, seq):
                    check(got[3][0] == OK, "code %d" % got[3][0])
                    return got[3][1:]
                link.lost += got is None
        raise Failed("no reply in 200 attempts")

    link.lost = 0
    ask(HELLO, BOARD, os.urandom(4))
    start = struct.unpack(">I", ask(READ, 1, bytes([0, CONTROL, 140, 4])))[0]
    count = 60
    for i in range(count):
        path = FIBRE1 if i % 2 else FIBRE2
        if i % 3 == 0:
            ask(WRITE, 1, bytes([0, CONTROL, 136]) + stage(path, 0xFF, ARM))
            ask(TRIGGER, BOARD, b"\x00\x02")
        elif i % 3 == 1:
            ask(WRITE, 1, bytes([0, CONTROL, 136]) + stage(path, 0xFF, NOW))
        else:
            reply = ask(CDB, 1, b"\x80\x01" + stage(path, 0xFF, NOW))
            check(reply[:2] == b"\1\0", "CDB switch: %s" % reply.hex())
        while ask(READ, 1, bytes([0, CONTROL, 134, 1]))[0] != READY:
            pass
        state, now, _, _, _, result, sequence = struct.unpack(">BBBBBBI", ask(READ, 1, bytes([0, CONTROL, 134, 10])))
        check((now, result) == (path, 0), "switch %d: path %d, result %d" % (i + 1, now, result))
        check(sequence == start + i + 1, "switch %d took effect %d times" % (i + 1, sequence - start - i))
    check(link.lost > 0, "the line has lost nothing")
    print("lossy: %d switches, each once" % count)


def leave_dark(link):
    for slot in range(MODULES):
        link.write(slot, CONTROL, 136, stage(DARK, 0xFF, NOW))
    for slot in range(MODULES):
        check(link.settle(slot)[1] == DARK, "slot %d is not dark" % slot)
    print("dark: as at the begin")


def main():
    if len(sys.argv) not in (3, 4) or sys.argv[3:] not in ([], ["lossy"]):
        sys.exit(__doc__)
    steps = (start, greet, identities, codes, cdb, bundle, repeats, noise, window, refusals, leave_dark)
    if sys.argv[3:]:
        steps = (lossy,)
    link = Link(sys.argv[1], int(sys.argv[2]))
    try:
        for step in steps:
            step(link)
    except Failed as failure:
        sys.exit("peer: %s: %s" % (step.__name__, failure))
    finally:
        link.close()


if __name__ == "__main__":
    main()
