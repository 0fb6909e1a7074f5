package transfer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// A job of the cell's queue outlives its submit node, and each member of the queue. So
// its submit node puts a large script on the checkpoint server before it passes the job
// on, and the member that leads gets it from there.

// scriptServerTimeout bounds how long a script may be on its way to or from the server.
const scriptServerTimeout = 5 * time.Minute

// withFileServer calls the checkpoint server.
func (t *FileTransfers) withFileServer(ctx context.Context, timeout time.Duration,
	call func(ctx context.Context, client wire.CheckpointServerClient) error) error {
	if t.fileServer == "" {
		return fmt.Errorf("%w: the files of jobs in the queue of the cell are stored on the checkpoint server, and "+
			"the node file of %s names none: an administrator sets checkpoint_server there, see roost-node(5); a "+
			"script of at most 1 MiB needs none, nor do files that are where the queue is", roost.Invalid, t.host)
	}
	conn, err := rpc.Dial(t.fileServer, t.identity, peer.CheckpointServer)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := call(ctx, wire.NewCheckpointServerClient(conn)); err != nil {
		return fmt.Errorf("checkpoint server %s: %w", t.fileServer, err)
	}
	return nil
}

func wireUserFile(u queue.UserScript) *wire.UserFile {
	return &wire.UserFile{Node: u.Node, Uid: u.UID, Digest: u.Name}
}

// PutScripts puts the scripts that jobs name on the checkpoint server. They are a user's
// of this host, whose jobs go to the queue of the cell.
func (t *FileTransfers) PutScripts(ctx context.Context, who queue.CallerIdentity, specs []queue.SubmitSpec) error {
	if err := t.Scripts.Check(who, specs); err != nil {
		return err
	}
	return eachScript(specs, func(name string) error {
		f, size, err := t.Scripts.open(queue.UserScript{UID: who.UID, Name: name})
		if err != nil {
			return err
		}
		defer f.Close()
		return t.putUserFile(ctx, queue.UserScript{Node: t.host, UID: who.UID, Name: name}, size, f)
	})
}

// GetScripts gets the scripts that jobs of a user of another node name, as far as they
// are not here.
func (t *FileTransfers) GetScripts(ctx context.Context, who queue.CallerIdentity, specs []queue.SubmitSpec) error {
	return eachScript(specs, func(name string) error {
		if !scriptName.MatchString(name) {
			return nil // it is refused later
		}
		f, _, err := t.openScript(ctx, queue.UserScript{Node: who.Origin, UID: who.UID, Name: name})
		if err != nil {
			return err
		}
		return f.Close()
	})
}

// eachScript calls f once with each script that jobs name.
func eachScript(specs []queue.SubmitSpec, f func(name string) error) error {
	done := map[string]bool{}
	for i := range specs {
		name, named := specs[i].Ad.Str(roost.AttrScriptFile)
		if !named || done[name] {
			continue
		}
		done[name] = true
		if err := f(name); err != nil {
			return err
		}
	}
	return nil
}

// fetchScript gets a script from the checkpoint server.
func (t *FileTransfers) fetchScript(ctx context.Context, u queue.UserScript) error {
	return t.withFileServer(ctx, scriptServerTimeout, func(ctx context.Context,
		client wire.CheckpointServerClient) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		get, err := client.GetFile(ctx, wireUserFile(u))
		if err != nil {
			return rpc.FromStatus(err)
		}
		name, err := storeScript(t.Scripts.userDir(u.Node, u.UID), MaxScript, func() ([]byte, error) {
			part, err := get.Recv()
			return part.GetData(), rpc.FromStatus(err)
		})
		if errors.Is(err, roost.NotFound) {
			return fmt.Errorf("script: %w: %w", roost.NoInput, err)
		}
		if err == nil && name != u.Name {
			err = fmt.Errorf("script: %w: it is damaged on the checkpoint server: submit the job again", roost.NoInput)
		}
		return err
	})
}

// maxBlobPins is how many container images and packages are kept for jobs.
const maxBlobPins = 10_000

// PinBlobs tells the checkpoint server which container images and packages jobs still
// need. A server of the release before knows no such call, and keeps all.
func PinBlobs(ctx context.Context, t *FileTransfers, digests []string, cellQueue bool) error {
	if n := len(digests); n > maxBlobPins {
		t.log.Warn("too many container images and packages for all of them to be kept", "count", n)
		digests = digests[:maxBlobPins]
	}
	pin := func(ctx context.Context, client wire.CheckpointServerClient) error {
		reply, err := client.PinBlobs(ctx, &wire.BlobPins{Digests: digests, CellQueue: cellQueue})
		if n := len(reply.GetDigests()); n > 0 {
			t.log.Warn("container images or packages of jobs are not on the checkpoint server", "count", n,
				"first", reply.GetDigests()[0], "server", t.fileServer)
		}
		if status.Code(err) == codes.Unimplemented {
			return nil
		}
		return rpc.FromStatus(err)
	}
	return t.withFileServer(ctx, scriptServerTimeout, pin)
}

// maxRetainScripts is how many scripts are named in one request.
const maxRetainScripts = 1000

// RetainScripts tells the checkpoint server which scripts jobs still need.
func (t *FileTransfers) RetainScripts(ctx context.Context, used []queue.UserScript) error {
	var files []*wire.UserFile
	for _, u := range used {
		if u.Node != "" {
			files = append(files, wireUserFile(u))
		}
	}
	for len(files) > 0 {
		some := files[:min(len(files), maxRetainScripts)]
		files = files[len(some):]
		if err := t.withFileServer(ctx, scriptServerTimeout, func(ctx context.Context,
			client wire.CheckpointServerClient) error {
			reply, err := client.RetainFiles(ctx, &wire.RetainFilesRequest{Files: some})
			if n := len(reply.GetMissing()); n > 0 {
				t.log.Warn("files of jobs are not on the checkpoint server", "count", n, "server", t.fileServer)
			}
			return rpc.FromStatus(err)
		}); err != nil {
			return err
		}
	}
	return nil
}
