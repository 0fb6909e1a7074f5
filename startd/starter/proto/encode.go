package proto

import "encoding/binary"

// MessageType is the first byte of a body.
type MessageType uint8

// Messages of the startd.
const (
	TypeStart       MessageType = 1  // Start
	TypeStop        MessageType = 2  // Stop
	TypeSignal      MessageType = 3  // Signal
	TypeSuspend     MessageType = 4  // Attempt, Enabled: the task is suspended already
	TypeResume      MessageType = 5  // Attempt
	TypeRenew       MessageType = 6  // Lease, Until
	TypeDiscard     MessageType = 7  // Attempt
	TypeRelease     MessageType = 8  // no fields
	TypeFreeze      MessageType = 9  // Enabled
	TypeSetWalltime MessageType = 10 // Attempt, Start.Walltime, Start.WalltimeReason
	TypePrepare     MessageType = 11 // Start: IO and Sandbox
	TypeSecrets     MessageType = 12 // Attempt, Start.Secrets, Signals
)

// Messages of a starter. Journal records have one of the last three types.
const (
	TypeHello     MessageType = 65 // State
	TypeStarted   MessageType = 66 // Attempt, PID, Since
	TypeExited    MessageType = 67 // Attempt, Exit
	TypeDiscarded MessageType = 68 // Attempt
)

// StarterMessage is any message: Type defines which of the other fields are used.
type StarterMessage struct {
	Type    MessageType
	Start   StartCmd
	Stop    StopCmd
	Signal  SignalCmd
	Attempt TaskAttempt
	Lease   int64
	// the latest end of the lease, in nanoseconds of CLOCK_BOOTTIME, however late this is
	// read; 0: none
	Until   int64
	Enabled bool
	Signals []uint32     // to the program, when the secrets are replaced
	State   StarterState // in Started: PID and Since; in Exited: Exit
}

// AppendFrame appends the message's frame to b.
func AppendFrame(b []byte, m *StarterMessage) []byte {
	start := len(b)
	w := bodyWriter{append(b, 0, 0, 0, 0)}
	w.body(m)
	binary.LittleEndian.PutUint32(w.buffer[start:], uint32(len(w.buffer)-start-4))
	return w.buffer
}

func (w *bodyWriter) body(m *StarterMessage) {
	w.buffer = append(w.buffer, byte(m.Type))
	switch m.Type {
	case TypeStart, TypePrepare:
		w.startCmd(&m.Start)
	case TypeStop:
		w.key(m.Stop.Attempt)
		w.num(uint64(m.Stop.Cause))
		w.flag(m.Stop.Fast)
		w.signed(m.Stop.Notice)
		w.text(m.Stop.Reason)
		w.num(uint64(m.Stop.Signal))
	case TypeSignal:
		w.key(m.Signal.Attempt)
		w.num(uint64(m.Signal.Signal))
		w.flag(m.Signal.All)
	case TypeSuspend:
		w.key(m.Attempt)
		w.flag(m.Enabled)
	case TypeResume, TypeDiscard, TypeDiscarded:
		w.key(m.Attempt)
	case TypeRenew:
		w.signed(m.Lease)
		w.signed(m.Until)
	case TypeFreeze:
		w.flag(m.Enabled)
	case TypeSetWalltime:
		w.key(m.Attempt)
		w.signed(m.Start.Walltime)
		w.text(m.Start.WalltimeReason)
	case TypeSecrets:
		w.key(m.Attempt)
		w.secrets(m.Start.Secrets)
		w.nums(m.Signals)
	case TypeHello:
		w.num(uint64(m.State.Phase))
		w.key(m.State.Attempt)
		w.signed(m.State.PID)
		w.signed(m.State.Since)
		w.taskExit(&m.State.Exit)
		w.signed(m.State.Starter)
	case TypeStarted:
		w.key(m.Attempt)
		w.signed(m.State.PID)
		w.signed(m.State.Since)
	case TypeExited:
		w.key(m.Attempt)
		w.taskExit(&m.State.Exit)
	}
}

func (w *bodyWriter) startCmd(o *StartCmd) {
	w.key(o.Attempt)
	w.text(o.Executable)
	w.texts(o.Arguments)
	w.texts(o.Environment)
	w.text(o.Cwd)
	w.text(o.Stdin)
	w.text(o.Stdout)
	w.text(o.Stderr)
	w.flag(o.Join)
	w.flag(o.Append)
	w.num(uint64(o.Umask))
	w.num(uint64(o.UID))
	w.num(uint64(o.GID))
	w.nums(o.Groups)
	w.signed(o.Walltime)
	w.signed(o.Notice)
	w.signed(o.Lease)
	w.text(o.WalltimeReason)
	w.text(o.IO)
	w.flag(o.Sandbox.Wanted)
	w.text(o.Sandbox.TempDir)
	w.num(uint64(len(o.Sandbox.Devices)))
	for _, d := range o.Sandbox.Devices {
		w.text(d.Path)
		w.num(uint64(d.Major))
		w.num(uint64(d.Minor))
	}
	w.texts(o.Restore.Helper)
	w.text(o.Restore.Input)
	w.text(o.Restore.Output)
	w.text(o.Restore.PID)
	w.signed(int64(o.OOMScore))
	w.signed(o.Limits.CPU)
	w.signed(o.Limits.AddressSpace)
	w.signed(o.Limits.File)
	w.signed(int64(o.Limits.Nice))
	image := o.Sandbox.Image.Root != ""
	end := o.AppendFiles || o.EndSignal != EndSignal{}
	packages := end || len(o.Sandbox.Packages) > 0
	if len(o.Sockets) == 0 && len(o.Secrets) == 0 && !image && !packages { // an older starter knows none
		return
	}
	w.num(uint64(len(o.Sockets)))
	for _, s := range o.Sockets {
		w.text(s.Name)
		w.text(s.Address)
		w.num(uint64(s.Port))
	}
	if len(o.Secrets) > 0 || image || packages {
		w.secrets(o.Secrets)
	}
	if image || packages {
		w.rootImage(&o.Sandbox.Image)
	}
	w.packages(&o.Sandbox, end)
	if end { // an older starter knows neither
		w.flag(o.AppendFiles)
		w.num(uint64(o.EndSignal.Signal))
		w.signed(o.EndSignal.Before)
		w.flag(o.EndSignal.ProgramOnly)
	}
}

// packages writes what an image of the releases before did not have: packages, and which
// mounts are files. All of it is written if more follows.
func (w *bodyWriter) packages(s *Sandbox, more bool) {
	var files []uint32 // mounts, by number
	for i, m := range s.Image.Mounts {
		if m.File {
			files = append(files, uint32(i))
		}
	}
	if len(s.Packages) == 0 && len(files) == 0 && !more {
		return
	}
	w.text(s.Namespace)
	w.num(uint64(len(s.Packages)))
	for _, p := range s.Packages {
		w.text(p.Root)
		w.text(p.Inside)
	}
	if len(files) > 0 || more {
		w.nums(files)
	}
}

func (w *bodyWriter) rootImage(i *RootImage) {
	w.text(i.Root)
	w.text(i.Namespace)
	w.text(i.Writable)
	w.num(uint64(len(i.Files)))
	for _, f := range i.Files {
		w.text(f.Path)
		w.text(f.Text)
		w.flag(f.Replace)
	}
	w.num(uint64(len(i.Mounts)))
	for _, m := range i.Mounts {
		w.text(m.Base)
		w.text(m.Path)
		w.text(m.Inside)
		w.flag(m.ReadOnly)
	}
}

func (w *bodyWriter) secrets(list []SecretFile) {
	w.num(uint64(len(list)))
	for _, f := range list {
		w.text(f.Name)
		w.num(uint64(len(f.Text)))
		w.buffer = append(w.buffer, f.Text...)
	}
}

func (w *bodyWriter) taskExit(e *TaskExit) {
	w.signed(int64(e.Code))
	w.signed(int64(e.Signal))
	w.flag(e.Core)
	w.num(uint64(e.Cause))
	w.text(e.Reason)
	w.num(uint64(e.Step))
	w.signed(int64(e.Errno))
	w.signed(e.Wall)
	w.signed(e.UserCPU)
	w.signed(e.SystemCPU)
	w.signed(e.MaxRSS)
}
