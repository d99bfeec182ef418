package runs

import "golang.org/x/sys/unix"

// remotes are file systems on which neither SQLite's locks nor its shared memory are to be
// trusted, by the number that statfs(2) gives.
var remotes = map[uint32]string{
	0x6969:     "NFS",
	0x517b:     "SMB",
	0xff534d42: "CIFS",
	0xfe534d42: "SMB2",
	0x65735546: "FUSE",
	0x01021997: "9p",
	0x00c36400: "Ceph",
	0x5346414f: "AFS",
	0x0bd00bd0: "Lustre",
	0x47504653: "GPFS",
	0x01161970: "GFS2",
	0x7461636f: "OCFS2",
}

// remoteFileSystem names the network file system that a directory is on, "" for none.
func remoteFileSystem(dir string) string {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return ""
	}
	return remotes[uint32(s.Type)]
}
