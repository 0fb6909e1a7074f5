package feed

import (
	"path"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/accounting/codec"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// entryEncoder completes and encodes entries.
type entryEncoder struct {
	groupName func(gid uint32) string // of the host; empty for an unknown one
	groups    map[uint32]string
}

// maxGroups bounds the names of groups that are remembered.
const maxGroups = 4096

// encode returns the form of a draft.
func (c *entryEncoder) encode(d *Draft) []byte {
	if d.Job != nil {
		c.completeJob(d)
	}
	return codec.AppendEntry(nil, &d.FeedEntry)
}

// completeJob adds what only the ad of the job says, and the name of its unix group.
func (c *entryEncoder) completeJob(d *Draft) {
	j := d.Job
	j.UnixGroup = c.unixGroup(j.GID)
	ad, err := classad.Parse(d.Ad.String())
	if err != nil {
		return
	}
	if command, ok := ad.Str(roost.AttrCmd); ok {
		j.Arguments = path.Base(command)
	}
	j.WorkDir, _ = ad.Str(roost.AttrIwd)
	j.Project = jobad.Project(ad)
}

func (c *entryEncoder) unixGroup(gid uint32) string {
	name, known := c.groups[gid]
	if known {
		return name
	}
	if c.groupName != nil {
		name = c.groupName(gid)
	}
	if c.groups == nil || len(c.groups) >= maxGroups {
		c.groups = map[uint32]string{}
	}
	c.groups[gid] = name
	return name
}
