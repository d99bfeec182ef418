package ocst_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// single is a number that single precision keeps exactly.
func single(min, max float64) *rapid.Generator[float64] {
	return rapid.Map(rapid.Float32Range(float32(min), float32(max)), func(x float32) float64 { return float64(x) })
}

func genTable() *rapid.Generator[*ocst.Table] {
	return rapid.Custom(func(t *rapid.T) *ocst.Table {
		moment := func(name string) time.Time {
			s := rapid.Int64Range(0, 4e9).Draw(t, name)
			if s == 0 {
				return time.Time{}
			}
			return time.Unix(s, 0).UTC()
		}
		hundredth := func(name string) float64 { return float64(rapid.Uint16().Draw(t, name)) / 100 }
		table := &ocst.Table{
			Serial: rapid.StringMatching(`[!-~]([ -~]{0,14}[!-~])?`).Draw(t, "serial"), Version: rapid.Uint32().Draw(t, "version"),
			Made: moment("made"), Expires: moment("expires"), Verified: genVerification().Draw(t, "verified"),
		}
		for i := range table.Dark {
			for lane := range table.Dark[i] {
				table.Dark[i][lane] = rapid.Uint16().Draw(t, "dark")
			}
		}
		celsius := rapid.IntRange(-40*256, 20*256).Draw(t, "celsius")
		for range rapid.IntRange(1, ocst.MaxPoints).Draw(t, "points") {
			p := ocst.Point{Celsius: float64(celsius) / 256}
			celsius += rapid.IntRange(1, 40*256).Draw(t, "warmer")
			// A few elements are drawn, or a table takes too long.
			for range 4 {
				f := ocst.Fit{
					Phase0: single(-100, 100).Draw(t, "phase"), A: ocst.Arm{Slope: single(1e-6, 1e6).Draw(t, "slope"), Curve: single(-1e6, 1e6).Draw(t, "curve")},
					Bar: ocst.Drive(rapid.Uint16().Draw(t, "bar")), Cross: ocst.Drive(rapid.Uint16().Draw(t, "cross")),
					BarER: hundredth("bar"), CrossER: hundredth("cross"),
				}
				f.B = ocst.Arm{Slope: single(1e-6, 1e6).Draw(t, "slope"), Curve: single(-1e6, 1e6).Draw(t, "curve")}
				p.Elements[rapid.IntRange(0, ocst.Elements-1).Draw(t, "element")] = f
			}
			for e := range p.Elements {
				if p.Elements[e].A.Slope == 0 {
					p.Elements[e].A.Slope, p.Elements[e].B.Slope = 0.25, 0.5
				}
			}
			table.Points = append(table.Points, p)
		}
		for range 20 {
			i := rapid.IntRange(0, ocst.Elements-1).Draw(t, "of")
			j := i + rapid.SampledFrom([]int{-ocst.Reach, -1, 1, 2, ocst.Reach}).Draw(t, "by")
			if j >= 0 && j < ocst.Elements {
				table.Coupling[i][j] = single(-0.49, 0.49).Draw(t, "coupling")
			}
		}
		return table
	})
}

func genVerification() *rapid.Generator[ocst.Verification] {
	return rapid.Custom(func(t *rapid.T) ocst.Verification {
		v := ocst.Verification{Pass: rapid.Bool().Draw(t, "pass")}
		for i := range v.Paths {
			v.Paths[i] = ocst.PathCheck{Loss: float64(rapid.Uint16().Draw(t, "loss")) / 100, Isolation: float64(rapid.Uint16().Draw(t, "isolation")) / 100}
		}
		for i := range v.Changes {
			v.Changes[i] = ocst.TransientCheck{
				Rise: time.Duration(rapid.Uint16().Draw(t, "rise")) * 100, Settle: time.Duration(rapid.Uint16().Draw(t, "settle")) * 100,
			}
		}
		return v
	})
}

// A table is read back as it was written, at the precision that it keeps; and a bit that
// flips anywhere in it is found.
func TestTable_RoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := genTable().Draw(t, "table")
		pages, err := want.Pages()
		if err != nil {
			t.Fatal(err)
		}
		if n, err := ocst.TablePages(pages[0]); err != nil || n != len(pages) || n > ocst.TableBanks {
			t.Fatalf("TablePages says %d, %v, and there are %d", n, err, len(pages))
		}
		got, err := ocst.ParsePages(pages)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Fatalf("error %v, -want +got\n%s", err, diff)
		}
		n := rapid.IntRange(0, len(pages)-1).Draw(t, "page")
		bit := rapid.IntRange(0, 8*128-1).Draw(t, "bit")
		pages[n][bit/8] ^= 1 << (bit % 8)
		if _, err := ocst.ParsePages(pages); !errors.Is(err, ocst.ErrTable) {
			t.Fatalf("bit %d of page %d flipped: %v", bit, n, err)
		}
	})
}

// table is a small table that can be used.
func table() *ocst.Table {
	t := &ocst.Table{
		Serial: "SN1", Version: 7, Made: time.Unix(1_700_000_000, 0).UTC(), Expires: time.Unix(1_800_000_000, 0).UTC(),
		Points: make([]ocst.Point, 1), Verified: ocst.Verification{Pass: true},
	}
	t.Points[0].Celsius = 25.5
	for e := range t.Points[0].Elements {
		t.Points[0].Elements[e] = ocst.Fit{Phase0: 1, A: ocst.Arm{Slope: 0.25}, B: ocst.Arm{Slope: 0.5, Curve: -0.001}, Bar: 0x8123, Cross: 0x456, BarER: 25, CrossER: 30.01}
	}
	t.Coupling[0][1] = 0.03125
	return t
}

// The places of things in the table, by the list at Table.Pages.
func TestTable_Golden(t *testing.T) {
	t.Parallel()
	pages, err := table().Pages()
	if err != nil {
		t.Fatal(err)
	}
	var all []byte
	for _, p := range pages {
		if len(p) != 128 {
			t.Fatalf("a page of %d bytes", len(p))
		}
		all = append(all, p[:126]...)
	}
	const points = 10 + 16 + 4 + 8 + 8 + 112 + 37
	const coupling = points + 2 + 36*28
	const end = coupling + 36*12*4
	for _, tt := range []struct {
		what string
		at   int
		want []byte
	}{
		{"head", 0, []byte{'O', 'L', 'U', 'T', 1, 1, 0, 0, (end + 4) >> 8, (end + 4) & 0xff}},
		{"serial", 10, []byte("SN1             ")},
		{"version", 26, []byte{0, 0, 0, 7}},
		{"made", 30, []byte{0, 0, 0, 0, 0x65, 0x53, 0xf1, 0x00}},
		{"expires", 38, []byte{0, 0, 0, 0, 0x6b, 0x49, 0xd2, 0x00}},
		{"pass", 158, []byte{1}},
		{"temperature", points, []byte{0x19, 0x80}},
		{"element", points + 2, []byte{0x3f, 0x80, 0, 0, 0x3e, 0x80, 0, 0, 0, 0, 0, 0, 0x3f, 0, 0, 0, 0xba, 0x83, 0x12, 0x6f, 0x81, 0x23, 0x04, 0x56, 0x09, 0xc4, 0x0b, 0xb9}},
		{"coupling", coupling + 6*4, []byte{0x3d, 0, 0, 0, 0, 0, 0, 0}},
		{"CRC-32", end, binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(all[:end]))},
		{"filling", end + 4, make([]byte, len(all)-end-4)},
	} {
		if got := all[tt.at:][:len(tt.want)]; !bytes.Equal(got, tt.want) {
			t.Errorf("%s at %d: % x, want % x", tt.what, tt.at, got, tt.want)
		}
	}
}

// What Check passes can be written and read back: nothing is lost by single precision that
// ParsePages would refuse then.
func TestTable_Check(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		fn   func(*ocst.Table)
		want string // "" is a table that can be written
	}{
		{"as it is", func(*ocst.Table) {}, ""},
		{"no serial", func(t *ocst.Table) { t.Serial = "" }, "serial number"},
		{"long serial", func(t *ocst.Table) { t.Serial = strings.Repeat("x", 17) }, "serial number"},
		{"blanks", func(t *ocst.Table) { t.Serial = "x " }, "serial number"},
		{"control character", func(t *ocst.Table) { t.Serial = "x\x1b[2J" }, "serial number"},
		{"two bytes a letter", func(t *ocst.Table) { t.Serial = "é" }, "serial number"},
		{"blank inside", func(t *ocst.Table) { t.Serial = "x y" }, ""},
		{"no point", func(t *ocst.Table) { t.Points = nil }, "0 temperatures"},
		{"four points", func(t *ocst.Table) { t.Points = make([]ocst.Point, 4) }, "4 temperatures"},
		{"cold", func(t *ocst.Table) { t.Points[0].Celsius = -41 }, "-41.00 °C"},
		{"hot", func(t *ocst.Table) { t.Points[0].Celsius = 126 }, "126.00 °C"},
		{"no temperature", func(t *ocst.Table) { t.Points[0].Celsius = math.NaN() }, "NaN"},
		{"descending", func(t *ocst.Table) { t.Points = append(t.Points, t.Points[0]); t.Points[1].Celsius = 20 }, "temperature 2"},
		{"the same step", func(t *ocst.Table) { t.Points = append(t.Points, t.Points[0]); t.Points[1].Celsius += 0.001 }, "temperature 2"},
		{"the next step", func(t *ocst.Table) { t.Points = append(t.Points, t.Points[0]); t.Points[1].Celsius += 1. / 256 }, ""},
		{"no phase", func(t *ocst.Table) { t.Points[0].Elements[16].Phase0 = math.NaN() }, "loop element 1.1 at 25.50 °C"},
		{"phase too far", func(t *ocst.Table) { t.Points[0].Elements[16].Phase0 = 1e30 }, "loop element 1.1"},
		{"no ratio", func(t *ocst.Table) { t.Points[0].Elements[0].BarER = math.NaN() }, "extinction ratio"},
		{"perfect", func(t *ocst.Table) { t.Points[0].Elements[0].BarER = math.Inf(1) }, ""},
		{"cold arm", func(t *ocst.Table) { t.Points[0].Elements[3].A.Slope = 0 }, "S1 of lane 4"},
		{"cooling arm", func(t *ocst.Table) { t.Points[0].Elements[3].B.Slope = -1 }, "S1 of lane 4"},
		{"0 in single precision", func(t *ocst.Table) { t.Points[0].Elements[3].B.Slope = 1e-60 }, "S1 of lane 4"},
		{"infinite in single precision", func(t *ocst.Table) { t.Points[0].Elements[3].B.Curve = 1e60 }, "S1 of lane 4"},
		{"no curve", func(t *ocst.Table) { t.Points[0].Elements[3].B.Curve = math.NaN() }, "S1 of lane 4"},
		{"with itself", func(t *ocst.Table) { t.Coupling[5][5] = 0.1 }, "coupling of S1 of lane 6 to S1 of lane 6"},
		{"too far", func(t *ocst.Table) { t.Coupling[5][12] = 0.1 }, "coupling of S2 of lane 5 to S1 of lane 6"},
		{"too much", func(t *ocst.Table) { t.Coupling[5][6] = 0.5 }, "is 0.5"},
		{"too much in single precision", func(t *ocst.Table) { t.Coupling[5][6] = 0.49999999999 }, "coupling"},
		{"no coupling", func(t *ocst.Table) { t.Coupling[5][6] = math.NaN() }, "is NaN"},
		{"far future", func(t *ocst.Table) { t.Expires = time.Unix(1<<60, 0) }, "in the year"},
		{"from 1970 on", func(t *ocst.Table) { t.Expires = time.Unix(0, 0) }, ""},
		{"huge verification", func(t *ocst.Table) { t.Verified.Changes[0].Settle = math.MaxInt64; t.Verified.Paths[1].Loss = 1e300 }, ""},
		{"odd verification", func(t *ocst.Table) { t.Verified.Changes[0].Rise = math.MinInt64; t.Verified.Paths[1].Loss = math.NaN() }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			table := table()
			tt.fn(table)
			pages, err := table.Pages()
			if tt.want != "" {
				if !errors.Is(err, ocst.ErrTable) || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v, want %q in it", err, tt.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := ocst.ParsePages(pages)
			if err != nil {
				t.Fatal(err)
			}
			if got.Expires.IsZero() != table.Expires.IsZero() {
				t.Errorf("it expires %v, and %v was written", got.Expires, table.Expires)
			}
		})
	}
}

func TestTable_Usable(t *testing.T) {
	t.Parallel()
	table := table()
	before := table.Expires.Add(-time.Second)
	for _, tt := range []struct {
		name   string
		fn     func(*ocst.Table)
		serial string
		now    time.Time
		want   string
	}{
		{"good", func(*ocst.Table) {}, "SN1", before, ""},
		{"of another module", func(*ocst.Table) {}, "SN2", before, "of module SN1, not of SN2"},
		{"at its end", func(*ocst.Table) {}, "SN1", table.Expires, "expired on 2027-01-15"},
		{"for ever", func(t *ocst.Table) { t.Expires = time.Time{} }, "SN1", before.AddDate(100, 0, 0), ""},
		{"not verified", func(t *ocst.Table) { t.Verified.Pass = false }, "SN1", before, "not passed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mine := *table
			tt.fn(&mine)
			err := mine.Usable(tt.serial, tt.now)
			if tt.want == "" && err != nil || tt.want != "" && (!errors.Is(err, ocst.ErrTable) || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%v, want %q in it", err, tt.want)
			}
		})
	}
}

// resum makes the CRCs right again, so that what is behind them is reached.
func resum(pages [][]byte) {
	var all []byte
	for _, p := range pages {
		all = append(all, p[:126]...)
	}
	if n := int(binary.BigEndian.Uint32(all[6:])); n >= 10 && n <= len(all) {
		binary.BigEndian.PutUint32(all[n-4:], crc32.ChecksumIEEE(all[:n-4]))
	}
	for i, p := range pages {
		copy(p[:126], all[126*i:])
		binary.BigEndian.PutUint16(p[126:], ocst.CRC16(p[:126]))
	}
}

// Damage that the CRCs do not show, as a faulty writer makes it, is found too, and each
// error says what is wrong.
func TestParsePages_Errors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		fn   func(pages [][]byte) [][]byte
		want string
	}{
		{"nothing", func([][]byte) [][]byte { return nil }, "there is none"},
		{"empty memory", func([][]byte) [][]byte { return [][]byte{make([]byte, 128)} }, "there is none"},
		{"short page", func(p [][]byte) [][]byte { p[3] = p[3][:127]; return p }, "page 3 has 127 bytes"},
		{"flipped bit", func(p [][]byte) [][]byte { p[3][0] ^= 1; return p }, "page 3 is damaged"},
		{"page missing", func(p [][]byte) [][]byte { return p[:len(p)-1] }, "its length"},
		{"page too many", func(p [][]byte) [][]byte {
			q := [][]byte{p[0], make([]byte, 128)}
			q = append(q, p[1:]...)
			resum(q)
			return q
		}, "its length"},
		{"pages swapped", func(p [][]byte) [][]byte { p[2], p[3] = p[3], p[2]; return p }, "its CRC is"},
		{"another magic", func(p [][]byte) [][]byte { p[0][0] = 'X'; resum(p); return p }, `does not begin with "OLUT"`},
		{"another format", func(p [][]byte) [][]byte { p[0][4] = 2; resum(p); return p }, "its format is 2"},
		{"no point", func(p [][]byte) [][]byte { p[0][5] = 0; resum(p); return p }, "0 temperatures"},
		{"many points", func(p [][]byte) [][]byte { p[0][5] = 255; resum(p); return p }, "255 temperatures"},
		{"more points than there are", func(p [][]byte) [][]byte { p[0][5] = 2; resum(p); return p }, "its length"},
		{"negative length", func(p [][]byte) [][]byte { p[0][6] = 0xff; resum(p); return p }, "its length"},
		{"unprintable serial", func(p [][]byte) [][]byte { p[0][10] = 7; resum(p); return p }, "serial number"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pages, err := table().Pages()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := ocst.ParsePages(tt.fn(pages)); !errors.Is(err, ocst.ErrTable) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q in it", err, tt.want)
			}
		})
	}
	first, err := table().Pages()
	if err != nil {
		t.Fatal(err)
	}
	for _, fn := range []func(p []byte) []byte{
		func(p []byte) []byte { return p[:127] },
		func(p []byte) []byte { return make([]byte, 128) },
		func(p []byte) []byte { p[20] ^= 1; return p },
		func(p []byte) []byte { p[5] = 4; resum([][]byte{p}); return p },
		func(p []byte) []byte { p[0] = 'X'; resum([][]byte{p}); return p },
	} {
		if n, err := ocst.TablePages(fn(bytes.Clone(first[0]))); !errors.Is(err, ocst.ErrTable) {
			t.Errorf("%d pages, %v", n, err)
		}
	}
}

// Whatever the memory holds, with CRCs that are right or not: a table that is read is one
// that can be written, and is the same then.
func FuzzParsePages(f *testing.F) {
	pages, err := table().Pages()
	if err != nil {
		f.Fatal(err)
	}
	whole := bytes.Join(pages, nil)
	f.Add(whole, false)
	f.Add(whole, true)
	nan := bytes.Clone(whole)
	copy(nan[128+70:], []byte{0x7f, 0xc0, 0, 0})
	f.Add(nan, true)
	f.Add(whole[:128], true)
	f.Fuzz(func(t *testing.T, data []byte, sums bool) {
		var pages [][]byte
		for len(data) > 0 && len(pages) < ocst.TableBanks {
			n := min(len(data), 128)
			pages = append(pages, bytes.Clone(data[:n]))
			data = data[n:]
		}
		if sums && len(pages) > 0 && len(pages[len(pages)-1]) == 128 {
			resum(pages)
		}
		first, err := ocst.ParsePages(pages)
		if err != nil {
			if !errors.Is(err, ocst.ErrTable) {
				t.Fatal(err)
			}
			return
		}
		if n, err := ocst.TablePages(pages[0]); err != nil || n != len(pages) {
			t.Fatalf("TablePages says %d, %v, and there are %d", n, err, len(pages))
		}
		again, err := first.Pages()
		if err != nil {
			t.Fatal(err)
		}
		second, err := ocst.ParsePages(again)
		if err != nil || !reflect.DeepEqual(first, second) {
			t.Fatalf("error %v, first %+v, second %+v", err, first, second)
		}
	})
}

func TestVerification_RoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := genVerification().Draw(t, "verification")
		p := want.Encode()
		if len(p) != 37 {
			t.Fatalf("%d bytes", len(p))
		}
		got, err := ocst.DecodeVerification(p)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Fatalf("error %v, -want +got\n%s", err, diff)
		}
		if _, err := ocst.DecodeVerification(p[:rapid.IntRange(0, 36).Draw(t, "cut")]); err == nil {
			t.Fatal("too few bytes were taken")
		}
	})
}

// The voltage that Volts gives leads to the phase that was asked for, and it says so when
// there is none.
func TestArm(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := ocst.Arm{Slope: rapid.Float64Range(0.1, 1).Draw(t, "slope"), Curve: rapid.Float64Range(-0.01, 0.01).Draw(t, "curve")}
		// All that the arm reaches: to the end of the converter, or to where it turns.
		top := a.Phase(ocst.DACFull)
		if a.Curve < 0 {
			if turn := -a.Slope / (2 * a.Curve); turn < ocst.DACFull*ocst.DACFull {
				top = a.Phase(math.Sqrt(turn))
			}
		}
		phase := rapid.Float64Range(0, 0.999).Draw(t, "part") * top
		v, ok := a.Volts(phase)
		if !ok || !(v >= 0 && v <= ocst.DACFull) || math.Abs(a.Phase(v)-phase) > 1e-9 {
			t.Fatalf("%g rad: %g V, %v, which gives %g rad", phase, v, ok, a.Phase(v))
		}
		if v, ok := a.Volts(top * 1.001); ok {
			t.Fatalf("%g rad, beyond its range: %g V", top*1.001, v)
		}
	})
	for _, tt := range []struct {
		arm   ocst.Arm
		phase float64
	}{
		{ocst.Arm{Slope: 0.3}, -1}, {ocst.Arm{Slope: 0.3}, math.NaN()}, {ocst.Arm{Slope: 0.3}, math.Inf(1)}, {ocst.Arm{}, 1},
		{ocst.Arm{Slope: math.NaN()}, 1}, {ocst.Arm{Slope: -1}, 1}, {ocst.Arm{Slope: 0.3, Curve: math.NaN()}, 1}, {ocst.Arm{Slope: 0.3, Curve: -1}, 1},
	} {
		if v, ok := tt.arm.Volts(tt.phase); ok {
			t.Errorf("%+v gives %v rad at %v V", tt.arm, tt.phase, v)
		}
	}
	if v, ok := (ocst.Arm{Slope: 0.3}).Volts(0); !ok || v != 0 {
		t.Errorf("no phase is %v V, %v", v, ok)
	}
}

func TestDrive(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		volts float64
		armB  bool
		want  ocst.Drive
	}{
		{0, false, 0}, {3.3, false, 0xfff}, {3.3, true, 0x8fff}, {1.65, false, 0x800}, {-1, true, 0x8000}, {9, false, 0xfff},
		{math.NaN(), false, 0}, {math.Inf(1), true, 0x8fff}, {math.Inf(-1), false, 0},
	} {
		if got := ocst.DriveOf(tt.volts, tt.armB); got != tt.want {
			t.Errorf("%v V, arm B %v: %04Xh, want %04Xh", tt.volts, tt.armB, uint16(got), uint16(tt.want))
		}
	}
	for code := range uint16(ocst.DACMax + 1) {
		d := ocst.Drive(code) | ocst.ArmB
		if got, armB := d.Code(); got != code || !armB || ocst.DriveOf(d.Volts(), true) != d {
			t.Fatalf("code %d comes back as %d, arm B %v, %v", code, got, armB, ocst.DriveOf(d.Volts(), true))
		}
	}
	f := ocst.Fit{A: ocst.Arm{Slope: 1}, B: ocst.Arm{Slope: 2}}
	if a, b := f.Own(0xfff), f.Own(0x8fff); math.Abs(a-3.3*3.3) > 1e-12 || math.Abs(b+2*3.3*3.3) > 1e-12 {
		t.Errorf("the arms give %v and %v rad", a, b)
	}
}

// The check value of CRC-16/IBM-3740 in the catalogue of CRCs.
func TestCRC16(t *testing.T) {
	t.Parallel()
	if got := ocst.CRC16([]byte("123456789")); got != 0x29b1 {
		t.Errorf("%04Xh", got)
	}
	if got := ocst.CRC16(nil); got != 0xffff {
		t.Errorf("of nothing: %04Xh", got)
	}
}

func BenchmarkParsePages(b *testing.B) {
	pages, err := table().Pages()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := ocst.ParsePages(pages); err != nil {
			b.Fatal(err)
		}
	}
}
