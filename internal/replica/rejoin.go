package replica

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// damagedSuffix follows the name of renamed data, before the date.
const damagedSuffix = ".damaged-"

// replaceDamagedLog replaces a damaged log by the others'. The rest of the log must not
// vote: a missing entry may have been committed with this replica's help, and with a
// shorter log it could help to elect a replica without that entry. So it becomes a new
// replica without data, and is added as a learner; it becomes a voter when it has caught
// up. The damaged log is renamed only when another replica leads, and so has a majority.
func (r *Replica) replaceDamagedLog(ctx context.Context, damages []string) (*diskStore, error) {
	r.log.Error("what this replica has on disk is damaged: it waits for a leader, and then asks for all that the "+
		"others have", "damaged", damages)
	others := slices.DeleteFunc(slices.Clone(r.config.Peers), func(addr string) bool {
		return addr == r.config.Address
	})
	for !r.cellHasLeader(ctx, others) {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case err := <-r.failure:
			return nil, err
		case <-time.After(r.config.ElectionTimeout):
		}
	}
	aside, err := setAside(r.config.Dir, time.Now())
	if err != nil {
		return nil, err
	}
	r.log.Warn("the damaged log is set aside", "as", aside)
	return openStore(r.config.Dir, r.log, r.fail)
}

// cellHasLeader reports whether one of some replicas leads this one's cell.
func (r *Replica) cellHasLeader(ctx context.Context, others []string) bool {
	cell := r.identity.Load().Cell
	return slices.ContainsFunc(r.peerStates(ctx, others, nil), func(a peerState) bool {
		return a.err == nil && a.state.GetLeads() && a.state.GetCell() == cell
	})
}

// setAside renames the log and the snapshots in dir to names with the date. A replica
// without them counts as one whose disk was lost: see renewIdentity.
func setAside(dir string, now time.Time) (aside string, err error) {
	suffix := damagedSuffix + now.Format("20060102-150405")
	for _, name := range []string{snapshotsDir, "log"} {
		path := filepath.Join(dir, name)
		if rerr := os.Rename(path, path+suffix); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
		aside = path + suffix
	}
	if rerr := os.Remove(filepath.Join(dir, markFile)); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
		err = errors.Join(err, rerr)
	}
	return aside, err
}
