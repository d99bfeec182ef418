package strictyaml

import (
	"fmt"
	"io"
	"os"
)

// MaxSize is how long a file may be that people write. What is longer is something else.
const MaxSize = 16 << 20

// ReadFile reads a file that people write, which may be a pipe. One longer than MaxSize,
// such as a device that never ends, is an error; others are those of package os.
func ReadFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(f, path)
}

// Read is ReadFile of what is open already; errors call it name.
func Read(r io.Reader, name string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxSize+1))
	if err == nil && len(data) > MaxSize {
		err = fmt.Errorf("%s is longer than %d MiB: that is no file of this kind", name, MaxSize>>20)
	}
	return data, err
}
