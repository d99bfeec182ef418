package linkmon

import (
	"encoding/binary"
	"slices"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// classicFilter is a classic BPF program, which anybody may attach. See
// Documentation/networking/filter.rst.
type classicFilter struct {
	fd int

	mu      sync.Mutex // guards what follows
	ignored map[uint32]bool
}

// mostFiltered interfaces fit into a program, which has at most 4096 instructions.
const mostFiltered = 2000

func (f *classicFilter) close() {}

func (f *classicFilter) ignore(index int, yes bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ignored == nil {
		f.ignored = map[uint32]bool{}
	}
	if yes {
		f.ignored[uint32(index)] = true
	} else {
		delete(f.ignored, uint32(index))
	}
	prog := classicProgram(f.ignored)
	// When this fails, which takes a lack of memory, the filter stays as it was.
	_ = unix.SetsockoptSockFprog(f.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{
		Len: uint16(len(prog)), Filter: unsafe.SliceData(prog),
	})
}

// classicProgram drops messages about the given interfaces and lets all others pass,
// such as those about new ones.
func classicProgram(ignored map[uint32]bool) []unix.SockFilter {
	indexes := make([]uint32, 0, len(ignored))
	for i := range ignored {
		indexes = append(indexes, i)
	}
	slices.Sort(indexes)
	indexes = indexes[:min(len(indexes), mostFiltered)]
	// A word is loaded in network order, and the message is in that of the host.
	prog := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offIndex}}
	for _, i := range indexes {
		var b [4]byte
		binary.NativeEndian.PutUint32(b[:], i)
		prog = append(prog,
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: binary.BigEndian.Uint32(b[:]), Jf: 1},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 0})
	}
	return append(prog, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 1<<32 - 1})
}
