package linkmon

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"github.com/ocslab/ocslab/timeline"
)

// Offsets in an RTM_NEWLINK message: struct nlmsghdr, struct ifinfomsg.
const (
	offType   = 4
	offFamily = nlHeaderLen
	offIndex  = nlHeaderLen + 4
	offFlags  = nlHeaderLen + 8
	offAttrs  = nlHeaderLen + ifInfoLen
)

// stamper is an eBPF program on a netlink socket. For each message that
// announces a link it writes down when that was, and the carrier counter in it, so
// what a message announces is known even when it does not fit into the socket.
//
// All objects are referenced for as long as the socket is open: without that they are
// finalized, and the program detached.
type stamper struct {
	ignored *ebpf.Map // by index
	ring    *ebpf.Map
	prog    *ebpf.Program
	reader  *ringbuf.Reader
	record  ringbuf.Record
}

const (
	ringSize   = 1 << 20 // 32 bytes for each announcement
	recordSize = 24      // stamp u64, index u32, flags u32, counter u32, counter is known u32
	// mostAttrs is how many attributes are looked at for the counter; it is about the
	// 25th.
	mostAttrs = 64
)

// newStamper attaches a program to a netlink socket.
func newStamper(fd int) (*stamper, error) {
	s := &stamper{}
	err := s.load()
	if err == nil {
		err = os.NewSyscallError("SO_ATTACH_BPF", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ATTACH_BPF, s.prog.FD()))
	}
	if err != nil {
		s.close()
		if errors.Is(err, unix.EPERM) {
			err = unix.EPERM // without the guesses around it
		}
		return nil, fmt.Errorf("needs CAP_BPF and Linux 5.8; without, announcements are stamped when they are read: %w", err)
	}
	return s, nil
}

func (s *stamper) load() (err error) {
	s.ignored, err = ebpf.NewMap(&ebpf.MapSpec{
		Name: "ignored", Type: ebpf.Hash, KeySize: 4, ValueSize: 1, MaxEntries: 1 << 16, Flags: unix.BPF_F_NO_PREALLOC,
	})
	if err != nil {
		return err
	}
	s.ring, err = ebpf.NewMap(&ebpf.MapSpec{Name: "announced", Type: ebpf.RingBuf, MaxEntries: ringSize})
	if err != nil {
		return err
	}
	s.prog, err = ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "linkmon", Type: ebpf.SocketFilter, License: "Apache-2.0", Instructions: s.program(),
	})
	if err != nil {
		return err
	}
	s.reader, err = ringbuf.NewReader(s.ring)
	return err
}

func (s *stamper) close() {
	if s.reader != nil {
		s.reader.Close()
	}
	s.prog.Close() // these may be nil
	s.ring.Close()
	s.ignored.Close()
}

func (s *stamper) ignore(index int, yes bool) {
	if yes {
		_ = s.ignored.Put(uint32(index), uint8(1)) // fails when it is full
	} else {
		_ = s.ignored.Delete(uint32(index)) // fails when it was full
	}
}

// program is
//
//	stamp = ktime()
//	head = first 32 bytes, else pass
//	if head.family != 0: drop             // bridges about their ports
//	if ignored[head.index]: drop
//	if head.type != RTM_NEWLINK: pass
//	find the attribute IFLA_CARRIER_CHANGES
//	ring <- stamp, index, flags, counter, found
//	pass
func (s *stamper) program() asm.Instructions {
	const (
		head   = -32 // on the stack
		record = head - recordSize
		attr   = record - 8
		key    = attr - 8
	)
	ctx, stamp, off, left := asm.R6, asm.R7, asm.R8, asm.R9
	load := func(from asm.Instruction, to, n int32) []asm.Instruction {
		return []asm.Instruction{
			asm.Mov.Reg(asm.R1, ctx), from, asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, to),
			asm.Mov.Imm(asm.R4, n), asm.FnSkbLoadBytes.Call(),
		}
	}
	var p asm.Instructions
	add := func(is ...asm.Instruction) { p = append(p, is...) }

	add(asm.Mov.Reg(ctx, asm.R1), asm.FnKtimeGetNs.Call(), asm.Mov.Reg(stamp, asm.R0))
	add(load(asm.Mov.Imm(asm.R2, 0), head, offAttrs)...)
	add(asm.JNE.Imm(asm.R0, 0, "pass"))
	add(asm.LoadMem(asm.R1, asm.RFP, head+offFamily, asm.Byte), asm.JNE.Imm(asm.R1, 0, "drop"))

	add(asm.LoadMem(asm.R1, asm.RFP, head+offIndex, asm.Word),
		asm.StoreMem(asm.RFP, key, asm.R1, asm.Word),
		asm.StoreMem(asm.RFP, record+8, asm.R1, asm.Word),
		asm.LoadMapPtr(asm.R1, s.ignored.FD()), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, key),
		asm.FnMapLookupElem.Call(), asm.JNE.Imm(asm.R0, 0, "drop"))
	add(asm.LoadMem(asm.R1, asm.RFP, head+offType, asm.Half), asm.JNE.Imm(asm.R1, rtmNewLink, "pass"))

	add(asm.StoreMem(asm.RFP, record, stamp, asm.DWord),
		asm.LoadMem(asm.R1, asm.RFP, head+offFlags, asm.Word),
		asm.StoreMem(asm.RFP, record+12, asm.R1, asm.Word),
		asm.Mov.Imm(asm.R1, 0),
		asm.StoreMem(asm.RFP, record+16, asm.R1, asm.DWord),
		asm.Mov.Imm(off, offAttrs), asm.Mov.Imm(left, mostAttrs))
	again := load(asm.Mov.Reg(asm.R2, off), attr, 4)
	again[0] = again[0].WithSymbol("next")
	add(again...)
	add(asm.JNE.Imm(asm.R0, 0, "tell"), // no more attributes
		asm.LoadMem(asm.R1, asm.RFP, attr, asm.Half),
		asm.LoadMem(asm.R2, asm.RFP, attr+2, asm.Half),
		asm.JEq.Imm(asm.R2, iflaCarrierChanges, "found"),
		asm.JLT.Imm(asm.R1, 4, "tell"), // malformed
		asm.Add.Imm(asm.R1, 3), asm.And.Imm(asm.R1, 1<<17-4), asm.Add.Reg(off, asm.R1),
		asm.Add.Imm(left, -1), asm.JNE.Imm(left, 0, "next"), asm.Ja.Label("tell"))
	add(asm.Add.Imm(off, 4).WithSymbol("found"))
	add(load(asm.Mov.Reg(asm.R2, off), record+16, 4)...)
	add(asm.JNE.Imm(asm.R0, 0, "tell"), asm.Mov.Imm(asm.R1, 1), asm.StoreMem(asm.RFP, record+20, asm.R1, asm.Word))

	const noWakeup = 1 // BPF_RB_NO_WAKEUP: the message itself wakes the reader
	add(asm.LoadMapPtr(asm.R1, s.ring.FD()).WithSymbol("tell"),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, record),
		asm.Mov.Imm(asm.R3, recordSize), asm.Mov.Imm(asm.R4, noWakeup), asm.FnRingbufOutput.Call())
	add(asm.Mov.Imm(asm.R0, -1).WithSymbol("pass"), asm.Return())
	add(asm.Mov.Imm(asm.R0, 0).WithSymbol("drop"), asm.Return())
	return p
}

// records hands out what has been written down.
func (s *stamper) records(fn func(notice)) error {
	s.reader.SetDeadline(time.Unix(1, 0)) // there is no waiting: the records are there
	for s.reader.AvailableBytes() > 0 {
		if err := s.reader.ReadInto(&s.record); err != nil {
			return fmt.Errorf("BPF ring buffer: %w", err)
		}
		fn(decodeRecord(s.record.RawSample))
	}
	return nil
}

func decodeRecord(b []byte) notice {
	native := binary.NativeEndian
	return notice{
		seen:    timeline.Point(int64(native.Uint64(b))),
		index:   int(int32(native.Uint32(b[8:]))),
		carrier: native.Uint32(b[12:])&iffLowerUp != 0,
		changes: native.Uint32(b[16:]),
		counted: native.Uint32(b[20:]) != 0,
		source:  fromBPF,
	}
}
