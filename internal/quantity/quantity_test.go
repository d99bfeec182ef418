package quantity_test

import (
	"math"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/internal/quantity"
)

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]float64{
		"256MB": 256e6, "256 MB": 256e6, "1KB": 1e3, "1kB": 1e3, "1KiB": 1024, "1.5GiB": 1.5 * (1 << 30), "900B": 900, "2TB": 2e12,
		"1TiB": 1 << 40, "0.5MiB": 1 << 19, "9000TB": 9e15,
	} {
		if got, err := quantity.ParseBytes(text); err != nil || got != want {
			t.Errorf("%q: got %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "MB", "256", "256M", "256mb", "256Mb", "256MBps", "-1MB", "+1MB", "1e6B", "1..5MB", ".5MB", "5.MB", "1  MB", " 1MB", "1MB ", "0MB", "0x1MB",
		"1,5MB", "10000TB", "99999999999999999999999999999999999GB", strings.Repeat("9", 400) + "B", "NaNB", "InfB", "1kiB", "١MB",
	} {
		if got, err := quantity.ParseBytes(text); err == nil || !strings.Contains(err.Error(), "such as 256MB") {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
}

func TestParseRate(t *testing.T) {
	for text, want := range map[string]float64{
		"450GBps": 450e9, "450GB/s": 450e9, "450 GB/s": 450e9, "400Gbps": 50e9, "400Gb/s": 50e9, "400Gbit/s": 50e9, "8bps": 1, "1MiB/s": 1 << 20,
	} {
		if got, err := quantity.ParseRate(text); err != nil || got != want {
			t.Errorf("%q: got %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "450", "450GB", "450G", "450gbps", "0GBps", "-1GBps", "1GBps/s", "9999999TBps"} {
		if got, err := quantity.ParseRate(text); err == nil || !strings.Contains(err.Error(), "such as 450GBps") {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
}

func TestWritten(t *testing.T) {
	for _, x := range []struct{ got, want string }{
		{quantity.Seconds(620.4444e-6), "620.4 µs"}, {quantity.Seconds(7474.1389e-6), "7.474 ms"}, {quantity.Seconds(3.2778e-6), "3.278 µs"},
		{quantity.Seconds(0.2), "200 ms"}, {quantity.Seconds(0), "0 s"}, {quantity.Seconds(math.Inf(1)), "never"}, {quantity.Seconds(1e-12), "0.001 ns"},
		{quantity.Seconds(12345.6), "12346 s"}, {quantity.Seconds(999.99e-6), "1 ms"}, {quantity.Seconds(-5e-6), "-5 µs"}, {quantity.Seconds(math.NaN()), "unknown"},
		{quantity.Bytes(256e6), "256 MB"}, {quantity.Bytes(1953.125), "1.953 kB"}, {quantity.Bytes(2e15), "2000 TB"}, {quantity.Bytes(20e15), "20000 TB"},
		{quantity.Rate(450e9), "450 GB/s"},
	} {
		if x.got != x.want {
			t.Errorf("got %q, want %q", x.got, x.want)
		}
	}
}

// FuzzParse: what is read is finite and above 0, and what is written of it is read again as about the same.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"256MB", "1.5 GiB", "450GBps", "400Gb/s", "1e9B", "0.000000000000001B", "9007TB"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for parse, write := range map[*func(string) (float64, error)]func(float64) string{&bytes: quantity.Bytes, &rate: quantity.Rate} {
			x, err := (*parse)(text)
			if err != nil {
				continue
			}
			if !(x > 0) || math.IsInf(x, 0) {
				t.Fatalf("%q is %v", text, x)
			}
			if x < 1 || x > 9e15 {
				continue // digits are lost
			}
			again, err := (*parse)(write(x))
			if err != nil || math.Abs(again-x) > 1e-3*x {
				t.Errorf("%q is %v, written %q, read again %v, %v", text, x, write(x), again, err)
			}
		}
	})
}

var (
	bytes = quantity.ParseBytes
	rate  = quantity.ParseRate
)
