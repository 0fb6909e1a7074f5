package metrics

import "syscall"

// AddDisk exports the room on the disk of a daemon's directory.
func (r *Registry) AddDisk(dir string) {
	free := r.Gauge("disk_free_bytes", "Bytes that are free on the disk of the daemon's state.")
	total := r.Gauge("disk_bytes", "Size of the disk of the daemon's state, in bytes.")
	r.OnRead(func(to *Reading) {
		var s syscall.Statfs_t
		if syscall.Statfs(dir, &s) == nil {
			to.Set(free, float64(s.Bavail)*float64(s.Frsize))
			to.Set(total, float64(s.Blocks)*float64(s.Frsize))
		}
	})
}
