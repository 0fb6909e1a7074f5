package codec

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// QueueImage turns the wire's form of an image into the queue's.
func QueueImage(m *wire.Image) queue.CheckpointImage {
	return queue.CheckpointImage{
		Sequence: m.GetSequence(), Attempt: roost.AttemptNumber(m.GetAttempt()), Time: m.GetTime(), Size: m.GetSize(),
		RawSize: m.GetRawSize(), MAC: m.GetMac(),
		CPUUsage: queue.CPUUsage{Wall: m.GetWall(), User: m.GetUserCpu(), System: m.GetSystemCpu()},
		Server:   m.GetServer(), Node: m.GetNode(),
		SelfCheckpoint: m.GetMethod() == wire.CheckpointPolicy_METHOD_SELF, SlotUser: m.GetSlotUser(),
	}
}

// WireImage is the way back.
func WireImage(m *queue.CheckpointImage, key []byte) *wire.Image {
	if m == nil {
		return nil
	}
	return &wire.Image{
		Sequence: m.Sequence, Attempt: uint32(m.Attempt), Time: m.Time, Size: m.Size, RawSize: m.RawSize, Mac: m.MAC,
		Wall: m.Wall, UserCpu: m.User,
		SystemCpu: m.System, Server: m.Server, Node: m.Node, Method: checkpointMethod(m.SelfCheckpoint), Key: key,
		SlotUser: m.SlotUser,
	}
}

// EventImage is what users are told of an image: no keys, and no servers. Only the wire's
// form for daemons has those.
func EventImage(m *queue.CheckpointImage) *wire.CheckpointImage {
	if m == nil {
		return nil
	}
	return &wire.CheckpointImage{
		Sequence: m.Sequence, Attempt: uint32(m.Attempt), Time: m.Time, Size: m.Size, RawSize: m.RawSize,
		Frozen: m.Frozen, Wall: m.Wall, Self: m.SelfCheckpoint,
	}
}

func checkpointMethod(self bool) wire.CheckpointPolicy_Method {
	if self {
		return wire.CheckpointPolicy_METHOD_SELF
	}
	return wire.CheckpointPolicy_METHOD_IMAGE
}

// WireCheckpointPolicy is what a node is told of checkpoints.
func WireCheckpointPolicy(p *queue.CheckpointPolicy, scratch bool) *wire.CheckpointPolicy {
	if p == nil {
		return nil
	}
	w := &wire.CheckpointPolicy{
		Method: checkpointMethod(p.Self), IntervalNs: int64(p.Interval), OnVacate: p.OnVacate,
		BeforeWalltime: p.AtLimit, Signal: p.Signal, ExitCode: p.ExitCode,
		Key: p.Key, Next: p.Next,
	}
	if scratch {
		w.Files = p.Files // without one they are where the next attempt finds them
	}
	return w
}
