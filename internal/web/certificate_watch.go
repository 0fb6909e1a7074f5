package web

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/roost-batch/roost/internal/config"
)

// certificateWatch notices that the files with the certificate and the key of the pages
// have changed. Naively the daemon would read them again. But it has given up the account
// that may read the key, and the kernel refuses it files that take the place of those
// that it began with. So it ends, and its master starts it with the new ones.
type certificateWatch struct {
	files  []string
	before []fileState // when they were read
	log    *slog.Logger
}

// fileState is what changes with a file that is written or replaced.
type fileState struct {
	modified time.Time
	size     int64
	inode    os.FileInfo
}

// certificatePoll is how often the files are looked at. They have changed when they
// differ from what was read, and have been as they are for that long: a renewal writes
// one after the other.
const certificatePoll = 10 * time.Second

// errCertificateChanged ends a daemon whose certificate was renewed.
var errCertificateChanged = errors.New("the certificate of the pages has changed")

// watchCertificate returns a watch of the files as they are now; nil: the pages have no
// TLS.
func watchCertificate(w *config.WebSettings, log *slog.Logger) *certificateWatch {
	if w.Certificate == "" {
		return nil
	}
	c := &certificateWatch{files: []string{w.Certificate, w.Key}, log: log}
	c.before, _ = c.states() // files that are not there are an error of who reads them
	return c
}

// states returns how the files are.
func (c *certificateWatch) states() ([]fileState, error) {
	all := make([]fileState, len(c.files))
	for i, file := range c.files {
		info, err := os.Stat(file)
		if err != nil {
			return nil, err
		}
		all[i] = fileState{info.ModTime(), info.Size(), info}
	}
	return all, nil
}

// Run returns errCertificateChanged when the files have changed, and nil when ctx ends.
func (c *certificateWatch) Run(ctx context.Context) error {
	if c == nil {
		return nil
	}
	if _, err := c.states(); err != nil {
		c.log.Warn("a new certificate is read only after a restart: its files cannot be looked at", "error", err)
		return nil
	}
	tick := time.NewTicker(certificatePoll)
	defer tick.Stop()
	last := c.before
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now, err := c.states()
		if err != nil { // one of them is being replaced
			continue
		}
		if !sameFiles(now, c.before) && sameFiles(now, last) {
			return errCertificateChanged
		}
		last = now
	}
}

func sameFiles(a, b []fileState) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !a[i].modified.Equal(b[i].modified) || a[i].size != b[i].size || !os.SameFile(a[i].inode, b[i].inode) {
			return false
		}
	}
	return true
}
