package storedfiles

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// A stored set of files comes as one stream. It is written to a hidden file of the
// directory that the files go to, named after the digest of the whole stream. What is in
// that file is not sent again, also not to the next roost fetch. When all has come and
// has its digest, the files are made from it.

// partialPrefix begins the name of the file of a set that has not come as a whole.
const partialPrefix = ".roost-fetch-"

// partialSet is a stored set of files that is being received.
type partialSet struct {
	dir     string
	digest  string   // SHA-256 of the whole stream in hexadecimal; "": no byte has come yet
	file    *os.File // nil: no byte has come yet
	size    int64    // of what has come
	resumed int64    // bytes that an earlier roost fetch has received
}

// receiveAll receives the rest of the set, through restarts of the schedd.
func (p *partialSet) receiveAll(c *frame.Invocation, id string) error {
	s, err := c.ConnectSchedd()
	if err != nil {
		return err
	}
	return c.Retry(frame.WatchTimeout, func(ctx context.Context, alive func()) error {
		for {
			again, err := p.receiveSome(ctx, s, id, alive)
			if err != nil || !again {
				return frame.DecodeError(err)
			}
		}
	})
}

// receiveSome receives one stream. Again is true if another one has to begin at the size
// that the set has now.
func (p *partialSet) receiveSome(ctx context.Context, s *scheddapi.ScheddClient, id string,
	alive func()) (again bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	asked := p.size
	stream, err := s.Logs(ctx, &scheddapi.LogsRequest{Id: id, Files: true, Offset: asked})
	if err != nil {
		return false, err
	}
	for opened := false; ; {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		alive()
		if p.file == nil || chunk.GetStored() != p.digest {
			opened = true
			if err := p.open(chunk.GetStored()); err != nil {
				return false, err
			}
		}
		switch {
		case chunk.GetOffset() == p.size:
		case opened:
			return true, nil
		default:
			return false, frame.KindErrorf(roost.Internal, "the schedd was asked for what begins at byte %d, and sent "+
				"what begins at %d in the place of %d", asked, chunk.GetOffset(), p.size)
		}
		n, err := p.file.WriteAt(chunk.GetData(), p.size)
		if p.size += int64(n); err != nil {
			return false, frame.KindErrorf(roost.NoOutput, "%v", err)
		}
	}
}

// open opens the file of a set. A schedd of an older release does not say which set it
// sends, so that nothing can be resumed.
func (p *partialSet) open(digest string) error {
	p.close()
	flags := os.O_RDWR | os.O_CREATE | syscall.O_NOFOLLOW
	if digest == "" {
		flags |= os.O_TRUNC
	}
	path := filepath.Join(p.dir, partialPrefix+digest)
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return frame.KindErrorf(roost.NoOutput, "%v", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = frame.KindErrorf(roost.Conflict, "%s: another roost fetch is getting the same files into this directory",
			path)
	}
	var size int64
	if err == nil {
		size, err = f.Seek(0, io.SeekEnd)
	}
	if err != nil {
		f.Close()
		return err
	}
	p.digest, p.file, p.size, p.resumed = digest, f, size, size
	return nil
}

// read has a function read the whole set, if it has its digest. Then, or if it is
// damaged, its file is removed.
func (p *partialSet) read(f func(io.Reader) error) error {
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(p.file, 0, p.size)); err != nil {
		return frame.KindErrorf(roost.NoOutput, "%v", err)
	}
	if p.digest != "" && hex.EncodeToString(sum.Sum(nil)) != p.digest {
		return errors.Join(frame.KindErrorf(roost.NoInput, "what came does not have its digest, and was removed: get "+
			"the files again"), p.remove())
	}
	if err := f(io.NewSectionReader(p.file, 0, p.size)); err != nil {
		return err
	}
	return p.remove()
}

func (p *partialSet) remove() error {
	if err := os.Remove(p.file.Name()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return frame.KindErrorf(roost.NoOutput, "%v", err)
	}
	return nil
}

// close closes the file. What has come of a set with a digest remains.
func (p *partialSet) close() {
	if p.file == nil {
		return
	}
	if p.size == 0 || p.digest == "" {
		os.Remove(p.file.Name())
	}
	p.file.Close()
	p.file = nil
}
