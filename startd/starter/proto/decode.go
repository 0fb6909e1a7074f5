package proto

import "encoding/binary"

// SplitFrame splits the first frame off b. If b contains no whole frame, body is nil; ok
// is false if the length is invalid.
func SplitFrame(b []byte) (body, rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, b, true
	}
	size := binary.LittleEndian.Uint32(b)
	if size == 0 || size > MaxFrame {
		return nil, b, false
	}
	if uint64(len(b)-4) < uint64(size) {
		return nil, b, true
	}
	return b[4 : 4+size], b[4+size:], true
}

// DecodeBody decodes the body of a frame; ok is false if it is invalid.
func DecodeBody(body []byte) (m StarterMessage, ok bool) {
	if len(body) == 0 {
		return StarterMessage{}, false
	}
	m.Type = MessageType(body[0])
	r := bodyReader{buffer: body[1:]}
	switch m.Type {
	case TypeStart, TypePrepare:
		r.startCmd(&m.Start)
	case TypeStop:
		m.Stop = StopCmd{Attempt: r.key(), Cause: EndCause(r.num()), Fast: r.flag(), Notice: r.signed(),
			Reason: r.text(), Signal: r.small()}
	case TypeSignal:
		m.Signal = SignalCmd{Attempt: r.key(), Signal: r.small(), All: r.flag()}
	case TypeSuspend:
		m.Attempt = r.key()
		m.Enabled = len(r.buffer) > 0 && r.flag() // an older startd does not send it
	case TypeResume, TypeDiscard, TypeDiscarded:
		m.Attempt = r.key()
	case TypeRenew:
		m.Lease, m.Until = r.signed(), r.signed() // an older startd does not send the second
	case TypeRelease:
	case TypeFreeze:
		m.Enabled = r.flag()
	case TypeSetWalltime:
		m.Attempt = r.key()
		m.Start.Walltime, m.Start.WalltimeReason = r.signed(), r.text()
	case TypeSecrets:
		m.Attempt = r.key()
		m.Start.Secrets = r.secrets()
		m.Signals = r.nums()
	case TypeHello:
		m.State = StarterState{Phase: StarterPhase(r.num()), Attempt: r.key(), PID: r.signed(), Since: r.signed(),
			Exit: r.taskExit(), Starter: r.signed()}
	case TypeStarted:
		m.Attempt = r.key()
		m.State.PID, m.State.Since = r.signed(), r.signed()
	case TypeExited:
		m.Attempt = r.key()
		m.State.Exit = r.taskExit()
	default:
		return StarterMessage{}, false
	}
	return m, !r.failed
}

// maxDevices bounds the devices of a sandbox.
const maxDevices = 1024

func (r *bodyReader) startCmd(o *StartCmd) {
	o.Attempt = r.key()
	o.Executable = r.text()
	o.Arguments = r.texts()
	o.Environment = r.texts()
	o.Cwd = r.text()
	o.Stdin = r.text()
	o.Stdout = r.text()
	o.Stderr = r.text()
	o.Join = r.flag()
	o.Append = r.flag()
	o.Umask = r.small()
	o.UID = r.small()
	o.GID = r.small()
	o.Groups = r.nums()
	o.Walltime = r.signed()
	o.Notice = r.signed()
	o.Lease = r.signed()
	o.WalltimeReason = r.text()
	o.IO = r.text()
	o.Sandbox.Wanted = r.flag()
	o.Sandbox.TempDir = r.text()
	for n := r.num(); n > 0 && !r.failed && len(o.Sandbox.Devices) < maxDevices; n-- {
		o.Sandbox.Devices = append(o.Sandbox.Devices, DeviceNode{Path: r.text(), Major: r.small(), Minor: r.small()})
	}
	o.Restore.Helper = r.texts()
	o.Restore.Input = r.text()
	o.Restore.Output = r.text()
	o.Restore.PID = r.text()
	o.OOMScore = int32(r.signed())
	if len(r.buffer) > 0 { // an older startd does not send them
		o.Limits = ProcessLimits{CPU: r.signed(), AddressSpace: r.signed(), File: r.signed(), Nice: int32(r.signed())}
	}
	if len(r.buffer) == 0 {
		return
	}
	for n := r.num(); n > 0 && !r.failed && len(o.Sockets) < MaxSockets; n-- {
		o.Sockets = append(o.Sockets, ListenSocket{Name: r.text(), Address: r.text(), Port: r.small()})
	}
	if len(r.buffer) > 0 {
		o.Secrets = r.secrets()
	}
	if len(r.buffer) > 0 {
		o.Sandbox.Image = r.rootImage()
	}
	if len(r.buffer) == 0 {
		return
	}
	o.Sandbox.Namespace = r.text()
	for n := r.num(); n > 0 && !r.failed && len(o.Sandbox.Packages) < MaxPackages; n-- {
		o.Sandbox.Packages = append(o.Sandbox.Packages, PackageMount{Root: r.text(), Inside: r.text()})
	}
	if len(r.buffer) == 0 {
		return
	}
	for _, i := range r.nums() {
		if int(i) >= len(o.Sandbox.Image.Mounts) {
			r.failed = true
			return
		}
		o.Sandbox.Image.Mounts[i].File = true
	}
	o.AppendFiles = r.flag()
	o.EndSignal = EndSignal{Signal: r.small(), Before: r.signed(), ProgramOnly: r.flag()}
}

func (r *bodyReader) rootImage() (i RootImage) {
	i.Root = r.text()
	i.Namespace = r.text()
	i.Writable = r.text()
	for n := r.num(); n > 0 && !r.failed && len(i.Files) < MaxImageMounts; n-- {
		i.Files = append(i.Files, ImageFile{Path: r.text(), Text: r.text(), Replace: r.flag()})
	}
	for n := r.num(); n > 0 && !r.failed && len(i.Mounts) < MaxImageMounts; n-- {
		i.Mounts = append(i.Mounts, ImageMount{Base: r.text(), Path: r.text(), Inside: r.text(), ReadOnly: r.flag()})
	}
	return i
}

func (r *bodyReader) secrets() (list []SecretFile) {
	for n := r.num(); n > 0 && !r.failed && len(list) < maxSecrets; n-- {
		f := SecretFile{Name: r.text()}
		f.Text = r.bytes()
		for i := range len(f.Name) {
			r.failed = r.failed || f.Name[i] == '/'
		}
		r.failed = r.failed || f.Name == "" || f.Name[0] == '.'
		list = append(list, f)
	}
	return list
}

// maxSecrets bounds how many secrets a task has.
const maxSecrets = 64

func (r *bodyReader) taskExit() TaskExit {
	return TaskExit{
		Code: int32(r.signed()), Signal: int32(r.signed()), Core: r.flag(), Cause: EndCause(r.num()), Reason: r.text(),
		Step: StartStep(r.num()), Errno: int32(r.signed()), Wall: r.signed(), UserCPU: r.signed(),
		SystemCPU: r.signed(), MaxRSS: r.signed(),
	}
}
