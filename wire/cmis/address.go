package cmis

import "fmt"

// half is the size of the lower memory and of an upper page. No read crosses it.
const half = 128

// Address is a byte in the memory of a module. Offsets below 128 are in the lower memory,
// where page and bank are 0; those from 128 on are in the upper page.
type Address struct {
	Page   uint8
	Bank   uint8 // CMIS repeats some pages for lanes 9 and above; 0 for all others
	Offset uint8
}

// String writes the address as the specifications do, "11h:186"; a bank other than 0 is
// put before it, "1:11h:186".
func (a Address) String() string {
	if a.Bank != 0 {
		return fmt.Sprintf("%d:%02Xh:%d", a.Bank, a.Page, a.Offset)
	}
	return fmt.Sprintf("%02Xh:%d", a.Page, a.Offset)
}

// Check returns an error unless n bytes can be read at a at once: 1 to 128 of them, all in
// the lower memory or all in one upper page.
func (a Address) Check(n int) error {
	end := 2 * half
	if a.Offset < half {
		end = half
		if a.Page != 0 || a.Bank != 0 {
			return fmt.Errorf("module memory %v: the lower memory has no pages, so page and bank must be 0", a)
		}
	}
	if n < 1 || int(a.Offset)+n > end {
		return fmt.Errorf("module memory %v: %d bytes cannot be read at once, only 1 to %d", a, n, end-int(a.Offset))
	}
	return nil
}

// ImageOffset returns where a is in a memory image: the lower memory, then upper page p at
// 128+128*p. It reports false for banks other than 0, which an image does not have.
func (a Address) ImageOffset() (offset int, ok bool) {
	return int(a.Page)*half + int(a.Offset), a.Bank == 0
}

// Span is a run of bytes that one read gives.
type Span struct {
	Address
	Length int
}

// ReadFunc reads len(buf) bytes at a from a module; a and len(buf) pass [Address.Check].
// It fills buf or returns an error.
type ReadFunc func(a Address, buf []byte) error
