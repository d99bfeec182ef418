package drivers

import (
	"fmt"

	"github.com/ocslab/ocslab/wire/trxlink"
)

// frames makes of a trace of bytes on the controller link one of frames, as people can read
// it, and of how many bytes belonged to none. Each direction has frames of its own.
func frames(trace func(sent bool, p []byte)) func(sent bool, p []byte) {
	if trace == nil {
		return nil
	}
	type direction struct {
		trxlink.Decoder
		told int // bytes that belonged to none
	}
	both := map[bool]*direction{true: {}, false: {}}
	return func(sent bool, p []byte) {
		d := both[sent]
		d.Feed(p)
		for f, more := d.Next(); more; f, more = d.Next() {
			if n := d.Skipped() - d.told; n > 0 {
				trace(sent, fmt.Appendf(nil, "%d bytes of no frame", n))
				d.told += n
			}
			trace(sent, []byte(f.String()))
		}
	}
}
