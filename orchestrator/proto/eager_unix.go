//go:build unix

package proto

import "syscall"

// writeOnce returns how much a socket, which does not block, has taken.
func writeOnce(fd uintptr, p []byte) int {
	n, _ := syscall.Write(int(fd), p)
	return max(n, 0)
}
