//go:build !linux

package runs

// remoteFileSystem cannot tell here.
func remoteFileSystem(string) string { return "" }
