package userlog

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/schedd/queue"
)

// maxRescues is the highest number of a rescue file, DAGMAN_MAX_RESCUE_NUM of DAGMan. The
// last one is written over.
const maxRescues = 100

// WriteRescue writes a rescue file under the number behind the newest one, and returns
// its name.
func WriteRescue(ctx context.Context, agents Agents, r queue.FlowRescue) (file string, err error) {
	a, err := agents.Agent(r.UID, r.GID)
	if err != nil {
		return "", err
	}
	base, first := filepath.Split(r.Base)
	name := ""
	for number := 1; number <= maxRescues; number++ {
		name = fmt.Sprintf("%s.rescue%03d", first, number)
		if _, err := a.Stat(ctx, base, name); errors.Is(err, roost.NoInput) {
			break
		} else if err != nil {
			return "", err
		}
	}
	f, err := a.Create(ctx, base, name, userfiles.CreateOptions{Sync: true})
	if err != nil {
		return "", err
	}
	defer f.Close()
	if _, err := f.Write([]byte(r.Text)); err != nil {
		return "", err
	}
	return filepath.Join(base, name), f.Commit()
}
