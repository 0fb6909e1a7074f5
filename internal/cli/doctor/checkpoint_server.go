package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/nodeaccess"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

const (
	imagesCheck = "checkpoint-server"

	// nearlyFull is the part of max_size from which on the store has too little room.
	nearlyFull = 0.95
)

// afterAllNames follows every name of a package: the server has to answer, and sends
// nothing.
const afterAllNames = "~"

// examineCheckpointServer checks whether the checkpoint server of this node's pool
// answers. On its own node it checks the server's room too.
func examineCheckpointServer(c *frame.Invocation, n *config.Node) (findings []checkResult) {
	if n == nil || n.ImageServer == "" {
		return nil
	}
	findings = append(findings, answerFinding(n.ImageServer, askCheckpointServer(c, n)))
	if n.Images != nil {
		if f, ok := checkImageRoom(n.Images); ok {
			findings = append(findings, f)
		}
	}
	return findings
}

// askCheckpointServer asks the server for nothing: by the schedd, as users do, and where
// there is none as the node.
func askCheckpointServer(c *frame.Invocation, n *config.Node) error {
	if n.Schedd != nil {
		err := c.CallSchedd(frame.AskTimeout, func(ctx context.Context, s *scheddapi.ScheddClient) error {
			_, err := s.ListPackages(ctx, &scheddapi.PackageQuery{After: afterAllNames})
			return err
		})
		return frame.DecodeError(err)
	}
	id, err := nodeaccess.LoadIdentity(n)
	if err != nil {
		return err
	}
	conn, err := rpc.Dial(n.ImageServer, id, peer.CheckpointServer)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(c.Context, nodeaccess.CellTimeout)
	defer cancel()
	_, err = wire.NewCheckpointServerClient(conn).ListPackages(ctx, &wire.PackageQuery{After: afterAllNames})
	return rpc.FromStatus(err)
}

// answerFinding judges the answer of a server.
func answerFinding(address string, err error) checkResult {
	switch {
	case err == nil:
		return checkResult{imagesCheck, levelOK, "answers at " + address, ""}
	case errors.Is(err, roost.PermissionDenied):
		return checkResult{imagesCheck, levelWarning, fmt.Sprintf("%s: %s", address, firstLine(frame.ErrorText(err))),
			"ask as root"}
	}
	return checkResult{imagesCheck, levelError, fmt.Sprintf("%s: %s", address, firstLine(frame.ErrorText(err))),
		"tasks whose images and packages are not on their machines wait, and checkpoints stay where they are; look " +
			"at checkpoint-server.log in the log directory of its node"}
}

// checkImageRoom checks the room that the server of this node has. ok is false for those
// who may not look.
func checkImageRoom(own *config.CheckpointServerSettings) (f checkResult, ok bool) {
	var disk unix.Statfs_t
	if err := unix.Statfs(own.Dir, &disk); err != nil {
		return checkResult{imagesCheck, levelWarning, fmt.Sprintf("%s: %v", own.Dir, err),
			"the server makes it when it starts; look at checkpoint-server.log in the pool's log directory"}, true
	}
	used, err := directoryBytes(own.Dir)
	if err != nil {
		return f, false
	}
	free := roost.Bytes(disk.Bavail) * roost.Bytes(disk.Bsize)
	f = checkResult{imagesCheck, levelOK, fmt.Sprintf("it has %v in %s; %v free", used, own.Dir, free), ""}
	if own.Max > 0 {
		f.Text = fmt.Sprintf("it has %v of at most %v in %s; %v free", used, own.Max, own.Dir, free)
	}
	switch {
	case free < minFreeDisk:
		f.Level, f.Hint = levelWarning, "make room on the disk, or give the server another with dir: until then it "+
			"takes nothing new"
	case own.Max > 0 && float64(used) >= nearlyFull*float64(own.Max):
		f.Level, f.Hint = levelWarning, "raise max_size of checkpoint_server in the node file, or have users remove "+
			"images and packages: roost image rm, roost package rm"
	}
	return f, true
}

// directoryBytes sums the files below a directory.
func directoryBytes(dir string) (sum roost.Bytes, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if errors.Is(err, fs.ErrNotExist) { // deleted meanwhile
				return nil
			}
			return err
		}
		if info, ierr := d.Info(); ierr == nil {
			sum += roost.Bytes(info.Size())
		}
		return nil
	})
	return sum, err
}
