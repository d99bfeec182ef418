package cmis_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/wire/cmis"
)

func reg(page, offset uint8, length int, access cmis.Access, banks int) cmis.Register {
	return cmis.Register{Address: cmis.Address{Page: page, Offset: offset}, Length: length, Access: access, Name: "test", Banks: banks}
}

// Each access does what it says, from the host's side and from the device's.
func TestStore_Access(t *testing.T) {
	t.Parallel()
	s := cmis.NewStore([]cmis.Register{
		reg(0xb0, 128, 1, cmis.ReadOnly, 0), reg(0xb0, 129, 1, cmis.ReadWrite, 0),
		reg(0xb0, 130, 1, cmis.WriteOnly, 0), reg(0xb0, 131, 1, cmis.ReadClear, 0), // 132 is in no register
	})
	at := cmis.Address{Page: 0xb0, Offset: 128}
	live := s.Bytes(at, 5)
	copy(live, []byte{1, 2, 3, 4, 5})
	read := func() []byte {
		t.Helper()
		got := make([]byte, 5)
		if err := s.Read(at, got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got, want := read(), []byte{1, 2, 0, 4, 0}; !bytes.Equal(got, want) {
		t.Errorf("the host reads % x, want % x", got, want)
	}
	if got, want := read(), []byte{1, 2, 0, 0, 0}; !bytes.Equal(got, want) {
		t.Errorf("the host reads % x again, want % x: flags are cleared", got, want)
	}
	if err := s.Write(at, []byte{11, 12, 13, 14, 15}); err != nil {
		t.Fatal(err)
	}
	if want := []byte{1, 12, 13, 0, 5}; !bytes.Equal(live, want) {
		t.Errorf("the device has % x, want % x", live, want)
	}
}

// A read clears the flags that it returns and no others.
func TestStore_ReadClear_Part(t *testing.T) {
	t.Parallel()
	s := cmis.NewStore(cmis.Registers())
	flags := s.Bytes(cmis.Address{Offset: cmis.RegModuleFlags}, 6)
	copy(flags, []byte{1, 2, 4, 8, 0, 0x80})
	one := make([]byte, 1)
	if err := s.Read(cmis.Address{Offset: cmis.RegModuleFlags + 1}, one); err != nil {
		t.Fatal(err)
	}
	if want := []byte{1, 0, 4, 8, 0, 0x80}; one[0] != 2 || !bytes.Equal(flags, want) {
		t.Errorf("read % x and left % x, want % x", one, flags, want)
	}
	// Nothing is cleared by a read that fails.
	if err := s.Read(cmis.Address{Offset: cmis.RegModuleFlags}, make([]byte, 121)); err == nil {
		t.Error("a read across the end of the lower memory was done")
	}
	if flags[0] != 1 {
		t.Error("a read that failed has cleared a flag")
	}
}

func TestStore_Banks(t *testing.T) {
	t.Parallel()
	s := cmis.NewStore([]cmis.Register{reg(0xb4, 128, 2, cmis.ReadWrite, 2), reg(0xb4, 200, 1, cmis.ReadWrite, 1), reg(0xb8, 128, 1, cmis.ReadOnly, 256)})
	for _, tt := range []struct {
		bank, page uint8
		want       bool
	}{{0, 0xb4, true}, {1, 0xb4, true}, {2, 0xb4, false}, {0, 0xb5, false}, {255, 0xb8, true}, {0, 0, false}} {
		if got := s.Has(tt.bank, tt.page); got != tt.want {
			t.Errorf("Has(%d, %02Xh) = %v", tt.bank, tt.page, got)
		}
	}
	for bank := range uint8(2) {
		for _, offset := range []uint8{128, 200} {
			if err := s.Write(cmis.Address{Page: 0xb4, Bank: bank, Offset: offset}, []byte{10 + bank}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for bank, want := range [][2]byte{{10, 10}, {11, 0}} { // 200 is in bank 0 only
		for i, offset := range []uint8{128, 200} {
			got := make([]byte, 1)
			if err := s.Read(cmis.Address{Page: 0xb4, Bank: uint8(bank), Offset: offset}, got); err != nil {
				t.Fatal(err)
			}
			if got[0] != want[i] {
				t.Errorf("bank %d, byte %d is %d, want %d", bank, offset, got[0], want[i])
			}
		}
	}
	absent := cmis.Address{Page: 0xb4, Bank: 2, Offset: 128}
	err := s.Read(absent, make([]byte, 1))
	if !errors.Is(err, cmis.ErrNoPage) || !strings.Contains(err.Error(), "2:B4h:128") {
		t.Errorf("reading a bank that is not there: %v", err)
	}
	if err := s.Write(absent, []byte{1}); !errors.Is(err, cmis.ErrNoPage) {
		t.Errorf("writing a bank that is not there: %v", err)
	}
	if got := s.Bytes(cmis.Address{Page: 0xb4, Offset: 128}, 2); cap(got) != 2 {
		t.Errorf("%d bytes were asked for, and appending would write over %d", 2, cap(got)-2)
	}
	if s.Bytes(absent, 1) != nil || s.Bytes(cmis.Address{Page: 0xb4, Offset: 250}, 7) != nil || s.Bytes(cmis.Address{}, -1) != nil {
		t.Error("there are bytes where there is no memory")
	}
}

// Where registers overlap, the later one counts.
func TestNewStore_Overlap(t *testing.T) {
	t.Parallel()
	s := cmis.NewStore([]cmis.Register{reg(0xb0, 128, 128, cmis.ReadOnly, 0), reg(0xb0, 140, 1, cmis.ReadWrite, 0)})
	if err := s.Write(cmis.Address{Page: 0xb0, Offset: 139}, []byte{1, 2, 3}); err != nil {
		t.Fatal(err)
	}
	if got := s.Bytes(cmis.Address{Page: 0xb0, Offset: 139}, 3); !bytes.Equal(got, []byte{0, 2, 0}) {
		t.Errorf("the device has % x", got)
	}
}

func TestNewStore_Mistakes(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]cmis.Register{
		"across the half":  reg(0, 120, 9, cmis.ReadOnly, 0),
		"empty":            reg(0xb0, 128, 0, cmis.ReadOnly, 0),
		"lower, paged":     reg(1, 3, 1, cmis.ReadOnly, 0),
		"bank in address":  {Address: cmis.Address{Page: 0xb0, Bank: 1, Offset: 128}, Length: 1},
		"too many banks":   reg(0xb0, 128, 1, cmis.ReadOnly, 257),
		"no such access":   reg(0xb0, 128, 1, cmis.ReadClear+1, 0),
		"banks of a lower": reg(0, 3, 1, cmis.ReadOnly, 2),
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("the register was taken")
				}
			}()
			cmis.NewStore([]cmis.Register{r})
		})
	}
}

// Whatever the host writes and reads, it changes nothing but what it may: the store behaves
// as a plain list of bytes, each with its access.
func TestStore_Model(t *testing.T) {
	t.Parallel()
	regs := []cmis.Register{
		reg(0, 10, 5, cmis.ReadOnly, 0), reg(0, 15, 5, cmis.ReadWrite, 0), reg(0xb0, 128, 4, cmis.ReadClear, 0),
		reg(0xb0, 132, 4, cmis.WriteOnly, 0), reg(0xb0, 136, 4, cmis.ReadWrite, 3), reg(0xb0, 255, 1, cmis.ReadOnly, 2),
	}
	type byteAt struct {
		bank, page uint8
		offset     int
	}
	rapid.Check(t, func(t *rapid.T) {
		s := cmis.NewStore(regs)
		access, value := map[byteAt]cmis.Access{}, map[byteAt]byte{}
		for _, r := range regs {
			for bank := range max(r.Banks, 1) {
				for i := range r.Length {
					access[byteAt{uint8(bank), r.Page, int(r.Offset) + i}] = r.Access
				}
			}
		}
		for range 30 {
			a := cmis.Address{Offset: uint8(rapid.IntRange(5, 25).Draw(t, "lower"))}
			if rapid.Bool().Draw(t, "upper") {
				a = cmis.Address{Page: 0xb0, Bank: rapid.Uint8Range(0, 2).Draw(t, "bank"), Offset: rapid.SampledFrom([]uint8{128, 130, 134, 138, 250}).Draw(t, "offset")}
			}
			n := rapid.IntRange(1, 6).Draw(t, "length")
			data := rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "data")
			op := rapid.IntRange(0, 2).Draw(t, "op")
			buf := make([]byte, n)
			var err error
			switch op {
			case 0:
				err = s.Read(a, buf)
			case 1:
				err = s.Write(a, data)
			case 2:
				copy(s.Bytes(a, n), data)
			}
			if err != nil {
				t.Fatal(err)
			}
			for i := range n {
				at := byteAt{a.Bank, a.Page, int(a.Offset) + i}
				rule, named := access[at]
				switch {
				case op == 0:
					want := value[at]
					if !named || rule == cmis.WriteOnly {
						want = 0
					}
					if buf[i] != want {
						t.Fatalf("read %v of %v: byte %d is %d, want %d", a, rule, i, buf[i], want)
					}
					if named && rule == cmis.ReadClear {
						value[at] = 0
					}
				case op == 1 && named && (rule == cmis.ReadWrite || rule == cmis.WriteOnly), op == 2:
					value[at] = data[i]
				}
			}
		}
	})
}

// The registers of CMIS do not overlap, are in order, have names of their own, and put no
// byte elsewhere than the decoders of this package look for it.
func TestRegisters(t *testing.T) {
	t.Parallel()
	regs := cmis.Registers()
	names, end := map[string]bool{}, -1
	for _, r := range regs {
		key := r.Address.String() + r.Name
		if names[key] || r.Name == "" {
			t.Errorf("%v has the name %q", r.Address, r.Name)
		}
		names[key] = true
		at, _ := r.ImageOffset()
		if at < end {
			t.Errorf("%s at %v overlaps with the one before it, or is before it", r.Name, r.Address)
		}
		end = at + r.Length
	}
	s := cmis.NewStore(regs)
	// All flags of the module and of its lanes are cleared by reading, and nothing else is.
	for _, tt := range []struct {
		page         cmis.Address
		first, after int
	}{{cmis.Address{}, 8, 14}, {cmis.Address{Page: 0x11, Offset: 128}, 134, 154}} {
		live := s.Bytes(tt.page, 128)
		for i := range live {
			live[i] = 0xff
		}
		if err := s.Read(tt.page, make([]byte, 128)); err != nil {
			t.Fatal(err)
		}
		for i, b := range live {
			at := int(tt.page.Offset) + i
			if cleared := b == 0; cleared != (at >= tt.first && at < tt.after) {
				t.Errorf("reading clears byte %d of page %02Xh: %v", at, tt.page.Page, cleared)
			}
		}
	}
	for _, span := range []cmis.Span{cmis.ProductSpan, cmis.AdvertisingSpan, cmis.LaneControlSpan, {Address: cmis.Address{Page: cmis.CDBPage, Offset: 128}, Length: 128}} {
		if s.Bytes(span.Address, span.Length) == nil {
			t.Errorf("%v is not there", span.Address)
		}
	}
	regs[0].Name = "changed"
	if cmis.Registers()[0].Name == "changed" {
		t.Error("the list is shared")
	}
	for _, tt := range []struct {
		a    cmis.Access
		want string
	}{{cmis.ReadOnly, "RO"}, {cmis.ReadWrite, "RW"}, {cmis.WriteOnly, "WO"}, {cmis.ReadClear, "RO/COR"}, {9, "unknown access"}} {
		if got := tt.a.String(); got != tt.want {
			t.Errorf("access %d is %q", tt.a, got)
		}
	}
}

// A module that is encoded and stored in a Store is one that Decode understands, and its
// flags are there once.
func TestStore_IsAModule(t *testing.T) {
	t.Parallel()
	im := osfp()
	s := cmis.NewStore(cmis.Registers())
	for _, p := range []cmis.Address{{}, {Offset: 128}, {Page: 1, Offset: 128}, {Page: 0x11, Offset: 128}} {
		if err := im.Read(p, s.Bytes(p, 128)); err != nil {
			t.Fatal(err)
		}
	}
	m, err := cmis.Decode(s.Read)
	if err != nil || m.Serial != "SN0002" || !m.Monitors[0].TxLOS || m.Monitors[0].RxPower != 5000 {
		t.Fatalf("%+v, %v", m, err)
	}
	if m, err = cmis.Decode(s.Read); err != nil || m.Monitors[0].TxLOS || m.Monitors[0].RxPower != 5000 {
		t.Errorf("again: %+v, %v", m, err)
	}
}
