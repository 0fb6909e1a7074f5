package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// The files of a job whose Transfer is "store" are on the checkpoint server, by their
// digests: its input files from the submission on, its output from the end of each
// attempt on. So neither its submit node nor any member of the cell's queue has to be up
// for them. Each set of files is one file there: see userfiles.WriteStored.

// storedTimeout bounds how long a set of files may be on its way to or from the server.
// The server breaks off transfers that do not move much earlier.
const storedTimeout = 2 * time.Hour

// isStored reports whether a program's files are on the checkpoint server.
func isStored(p queue.TaskProgram) bool { return p.Transfer == jobad.TransferStore }

// CheckStored refuses jobs with stored files in a queue of one host. They could as well
// have them there.
func CheckStored(who queue.CallerIdentity, specs []queue.SubmitSpec) error {
	for i := range specs {
		if mode, _ := specs[i].Ad.Str(roost.AttrTransfer); mode == jobad.TransferStore && who.Origin == "" {
			return fmt.Errorf("job %d: attribute %s: %w: only jobs in the queue of the cell have their files stored: "+
				"submit it with --cell", i, roost.AttrTransfer, roost.Invalid)
		}
	}
	return nil
}

// temporaryFile is a file of the spool without a name. It leaves the reserve of the disk
// alone, and computes the digest of what is written.
type temporaryFile struct {
	*os.File
	writer io.Writer
	sum    hash.Hash
	size   int64
}

func (s *SpoolDir) createTemporary() (*temporaryFile, error) {
	err := os.MkdirAll(s.Dir, 0o700)
	var f *os.File
	if err == nil {
		f, err = os.CreateTemp(s.Dir, "storing-")
	}
	if err == nil {
		err = os.Remove(f.Name())
	}
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	return &temporaryFile{File: f, writer: &spoolWriter{to: f, reserve: s.Reserve}, sum: sha256.New()}, nil
}

// Write implements io.Writer.
func (f *temporaryFile) Write(p []byte) (int, error) {
	n, err := f.writer.Write(p)
	f.sum.Write(p[:n])
	f.size += int64(n)
	return n, err
}

// putTemporary stores what was written as a user's file, and returns its name.
func (t *FileTransfers) putTemporary(ctx context.Context, f *temporaryFile, node string, uid uint32) (name string,
	err error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", fmt.Errorf("spool: %w", err)
	}
	name = hex.EncodeToString(f.sum.Sum(nil))
	return name, t.putUserFile(ctx, queue.UserScript{Node: node, UID: uid, Name: name}, f.size, f.File)
}

// storeSpooled stores a file of the spool as a user's file. One that is not there is
// empty, and has no name.
func (t *FileTransfers) storeSpooled(ctx context.Context, path, node string, uid uint32) (name string, size int64,
	err error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return "", 0, nil
	} else if err != nil {
		return "", 0, fmt.Errorf("spool: %w", err)
	}
	defer f.Close()
	sum := sha256.New()
	size, err = io.Copy(sum, f)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return "", 0, fmt.Errorf("spool: %w", err)
	}
	name = hex.EncodeToString(sum.Sum(nil))
	return name, size, t.putUserFile(ctx, queue.UserScript{Node: node, UID: uid, Name: name}, size, f)
}

// putUserFile puts a file on the checkpoint server.
func (t *FileTransfers) putUserFile(ctx context.Context, u queue.UserScript, size int64, f io.Reader) error {
	return t.withFileServer(ctx, storedTimeout, func(ctx context.Context, client wire.CheckpointServerClient) error {
		put, err := client.PutFile(ctx)
		if err != nil {
			return rpc.FromStatus(err)
		}
		part := &wire.UserFilePart{File: wireUserFile(u), Size: size}
		for put.Send(part) == nil { // otherwise the cause comes with the answer
			data := make([]byte, scriptChunk)
			n, err := f.Read(data)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return fmt.Errorf("file to be stored: %w: %w", roost.NoInput, err)
			}
			part = &wire.UserFilePart{Data: data[:n]}
		}
		_, err = put.CloseAndRecv()
		return rpc.FromStatus(err)
	})
}

// ReadStoredFile has a function read a user's file from the checkpoint server, from an
// offset on. What it reads ends with an error if the file does not have its digest, which
// only whoever has the whole can tell: with an offset, that is the caller.
func (t *FileTransfers) ReadStoredFile(ctx context.Context, u queue.UserScript, offset int64,
	read func(io.Reader) error) error {
	if !scriptName.MatchString(u.Name) {
		return fmt.Errorf("stored file %q: %w: that is no name of one", u.Name, roost.Invalid)
	}
	return t.withFileServer(ctx, storedTimeout, func(ctx context.Context, client wire.CheckpointServerClient) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		file := wireUserFile(u)
		file.Offset = offset
		get, err := client.GetFile(ctx, file)
		if err != nil {
			return rpc.FromStatus(err)
		}
		at := int64(0) // a server of an older release begins there
		return read(&storedReader{name: u.Name, sum: sha256.New(), isPart: offset > 0, recv: func() ([]byte, error) {
			part, err := get.Recv()
			if !errors.Is(err, io.EOF) {
				err = rpc.FromStatus(err)
			}
			data := part.GetData()
			at = max(at, part.GetOffset())
			skipped := min(max(offset-at, 0), int64(len(data)))
			at += int64(len(data))
			return data[skipped:], err
		}})
	})
}

// storedReader reads a stored file as it comes.
type storedReader struct {
	name   string
	sum    hash.Hash
	isPart bool // its digest says nothing
	recv   func() ([]byte, error)
	rest   []byte
}

// Read implements io.Reader.
func (r *storedReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		data, err := r.recv()
		switch {
		case errors.Is(err, io.EOF) && !r.isPart && hex.EncodeToString(r.sum.Sum(nil)) != r.name:
			return 0, fmt.Errorf("stored file %.12s…: %w: it is damaged on the checkpoint server", r.name,
				roost.NoInput)
		case errors.Is(err, io.EOF):
			return 0, io.EOF
		case errors.Is(err, roost.NotFound):
			return 0, fmt.Errorf("stored file: %w: %w", roost.NoInput, err)
		case err != nil:
			return 0, err
		}
		r.sum.Write(data)
		r.rest = data
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}
