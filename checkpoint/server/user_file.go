package server

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/checkpoint/store"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/wire"
)

// A job in the queue of the cell outlives its submit node and each member of the queue,
// and its files must too. So the submit node puts a large script, and stored input, here
// before it passes the job on. Its certificate says whose users' files it may put. The
// queue of the cell gets the files of the users of all nodes: its jobs say which, and
// from which node they came. It puts the stored output of these jobs, as their users'
// files. No file replaces another one, as its name is the digest of its contents.

// userFilePart is the bytes of a file in one message.
const userFilePart = 256 << 10

// maxRetainFiles bounds the files in one request.
const maxRetainFiles = 1000

// userFileKey returns the file of a request, if the caller may have to do with it.
func userFileKey(ctx context.Context, f *wire.UserFile) (store.UserFileKey, error) {
	k := store.UserFileKey{Node: f.GetNode(), UID: f.GetUid(), Digest: f.GetDigest()}
	p, ok := peer.FromContext(ctx)
	if !ok || !p.Local && p.Name != k.Node && !p.Plays(peer.CellQueue) {
		return k, fmt.Errorf("%v: %w: a submit node has to do with the files of its own users only, and the queue of "+
			"the cell with those of all; this is %s", k, roost.PermissionDenied, p)
	}
	return k, nil
}

// PutFile stores a file of a user. When it answers, the file is on the disk.
func (s *Service) PutFile(stream grpc.ClientStreamingServer[wire.UserFilePart, wire.PutReply]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	k, err := userFileKey(stream.Context(), first.GetFile())
	if err != nil {
		return err
	}
	part := first
	if err = s.runUpload(stream.Context(), func(moved func()) error {
		return s.images.ReceiveUserFile(k, first.GetSize(), func() (data []byte, err error) {
			if part == nil {
				if part, err = stream.Recv(); err != nil {
					return nil, err
				}
			}
			moved()
			data, part = part.GetData(), nil
			return data, nil
		})
	}); err != nil {
		return err
	}
	return stream.SendAndClose(&wire.PutReply{Files: 1, Bytes: first.GetSize()})
}

// GetFile sends a file of a user, from an offset on.
func (s *Service) GetFile(req *wire.UserFile, stream grpc.ServerStreamingServer[wire.UserFilePart]) error {
	k, err := userFileKey(stream.Context(), req)
	if err != nil {
		return err
	}
	return s.runTransfer(stream.Context(), func(moved func()) error {
		f, err := s.images.OpenUserFile(k)
		if err != nil {
			return err
		}
		defer f.Close()
		at, err := f.Seek(req.GetOffset(), io.SeekStart)
		if err != nil {
			return fmt.Errorf("%v: %w: it has no offset %d", k, roost.Invalid, req.GetOffset())
		}
		for {
			data := make([]byte, userFilePart) // a message may still be in transit when the next is made
			n, err := f.Read(data)
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("%v: %w", k, err)
			}
			if err := stream.Send(&wire.UserFilePart{Data: data[:n], Offset: at}); err != nil {
				return err
			}
			at += int64(n)
			moved()
		}
	})
}

// RetainFiles notes that jobs still need files, and says which are not here.
func (s *Service) RetainFiles(ctx context.Context, req *wire.RetainFilesRequest) (*wire.RetainFilesReply, error) {
	if n := len(req.GetFiles()); n > maxRetainFiles {
		return nil, fmt.Errorf("files: %w: %d in one request, and %d is the most", roost.Exhausted, n, maxRetainFiles)
	}
	reply := &wire.RetainFilesReply{}
	for _, f := range req.GetFiles() {
		k, err := userFileKey(ctx, f)
		if err == nil {
			err = s.images.RetainUserFile(k)
		}
		switch {
		case errors.Is(err, roost.NotFound):
			reply.Missing = append(reply.Missing, f)
		case err != nil:
			return nil, err
		}
	}
	return reply, nil
}
