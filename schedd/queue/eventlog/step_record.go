package eventlog

import "google.golang.org/protobuf/encoding/protowire"

// Steps are the steps of an attempt.
type Steps struct{ List []Step }

// Step is a step of an attempt: what srun of the Slurm dialect ran in it. All of it is as
// the attempt's program says.
type Step struct {
	Number       uint32
	Name         string
	Began, Ended int64 // unix nanoseconds; Ended is 0 of one that ended with the attempt
	Code         int32 // the highest exit code of its tasks, when Signal is 0
	Signal       int32
	End          string // "cancelled", "timeout" or "node_fail"; empty: by itself
	Tasks        uint32
	CPUs         uint32 // of all its tasks together
	Nodes        uint32
	NodeList     string // as "n[1-3]"
	User, System int64  // nanoseconds of all its tasks
	MaxRSS       PeakOfTask
	MinCPU       PeakOfTask // nanoseconds
	SumRSS       int64      // bytes; the highest of each task, together
}

// PeakOfTask is an extreme value among the tasks of a step, and which task has it.
type PeakOfTask struct {
	Value int64
	Task  uint32
	Node  string
}

func (s *Step) append(b []byte) []byte {
	b = appendText(appendNumber(b, 1, uint64(s.Number)), 2, s.Name)
	b = appendNumber(appendNumber(b, 3, uint64(s.Began)), 4, uint64(s.Ended))
	b = appendNumber(appendNumber(b, 5, uint64(uint32(s.Code))), 6, uint64(uint32(s.Signal)))
	b = appendText(b, 7, s.End)
	b = appendNumber(appendNumber(b, 8, uint64(s.Tasks)), 9, uint64(s.CPUs))
	b = appendText(appendNumber(b, 10, uint64(s.Nodes)), 11, s.NodeList)
	b = appendNumber(appendNumber(b, 12, uint64(s.User)), 13, uint64(s.System))
	b = s.MaxRSS.append(b, 14)
	return appendNumber(s.MinCPU.append(b, 17), 20, uint64(s.SumRSS))
}

// append adds the form on disk in three fields from a number on.
func (p PeakOfTask) append(b []byte, from protowire.Number) []byte {
	b = appendNumber(appendNumber(b, from, uint64(p.Value)), from+1, uint64(p.Task))
	return appendText(b, from+2, p.Node)
}

func (p *PeakOfTask) decode(field int, f encodedField) {
	switch field {
	case 0:
		p.Value = int64(f.value)
	case 1:
		p.Task = uint32(f.value)
	case 2:
		p.Node = string(f.bytes)
	}
}

func (s *Step) decode(b []byte) error {
	return eachField(b, func(f encodedField) error {
		switch f.number {
		case 1:
			s.Number = uint32(f.value)
		case 2:
			s.Name = string(f.bytes)
		case 3:
			s.Began = int64(f.value)
		case 4:
			s.Ended = int64(f.value)
		case 5:
			s.Code = int32(f.value)
		case 6:
			s.Signal = int32(f.value)
		case 7:
			s.End = string(f.bytes)
		case 8:
			s.Tasks = uint32(f.value)
		case 9:
			s.CPUs = uint32(f.value)
		case 10:
			s.Nodes = uint32(f.value)
		case 11:
			s.NodeList = string(f.bytes)
		case 12:
			s.User = int64(f.value)
		case 13:
			s.System = int64(f.value)
		case 14, 15, 16:
			s.MaxRSS.decode(int(f.number)-14, f)
		case 17, 18, 19:
			s.MinCPU.decode(int(f.number)-17, f)
		case 20:
			s.SumRSS = int64(f.value)
		}
		return nil
	})
}
