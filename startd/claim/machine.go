package claim

import (
	"log/slog"
	"path/filepath"
	"sync/atomic"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/sitescript"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/startd/containerimage"
	"github.com/roost-batch/roost/startd/gpudriver"
	"github.com/roost-batch/roost/startd/gpuwatch"
	"github.com/roost-batch/roost/startd/meter"
	"github.com/roost-batch/roost/startd/probe"
	"github.com/roost-batch/roost/startd/slot"
)

// Host is the machine's loop, as far as the runners of its claims call it. Several
// goroutines call its methods.
type Host interface {
	// Post gives the loop an event of a runner, such as EndedEvent. It waits until there
	// is room; after the loop's end it drops the event.
	Post(event any)
	// Done returns a channel that is closed when the loop reads no more.
	Done() <-chan struct{}
	// OpenSpawnSocket listens for processes of an attempt that want something run on
	// other machines of their job, until the attempt ends.
	OpenSpawnSocket(a *Attempt) error
}

// Options are what the claims of a machine work with.
type Options struct {
	Log         *slog.Logger
	Settings    *config.StartdSettings
	BootID      string // the kernel's name for this boot
	StarterPath string // of roost-starter
	Sandboxed   bool   // tasks run in sandboxes (DetectSandbox)
	OutputLimit roost.Bytes
	Host        Host
	Agents      *userfiles.AgentPool
	Accounts    *Accounts
	Cgroups     *Cgroups
	GPUs        *gpuwatch.Monitor
	Meters      *meter.Meters
	Checkpoints *Checkpoints
	Prober      *probe.Prober
	Ports       PortAddress
	Containers  *containerimage.Cache // nil: no container images
	GPUDriver   *gpudriver.Copier     // for tasks in images; nil: none
	Scripts     *sitescript.Groups    // of prologues and epilogues; nil: none are configured
}

// Machine is what the claims of a startd share. But for the user of the last claim, which
// the next spare is made for, it does not change while they run.
type Machine struct {
	log         *slog.Logger
	config      *config.StartdSettings
	dirs        Dirs
	boot        string
	starterPath string
	sandboxed   bool
	outputLimit roost.Bytes // of what is captured of a standard stream
	host        Host
	agents      *userfiles.AgentPool
	accounts    *Accounts
	groups      *Cgroups
	gpus        *gpuwatch.Monitor
	meters      *meter.Meters
	checkpoints *Checkpoints
	prober      *probe.Prober
	containers  *containerimage.Cache
	gpuDriver   *gpudriver.Copier
	scripts     *sitescript.Groups
	ports       PortAddress // on which tasks have their ports
	lastUser    atomic.Uint32
}

// NewMachine returns a machine without claims.
func NewMachine(o Options) *Machine {
	m := &Machine{
		log: o.Log, config: o.Settings, dirs: Dirs(o.Settings.Dir), boot: o.BootID, starterPath: o.StarterPath,
		sandboxed: o.Sandboxed, outputLimit: o.OutputLimit, host: o.Host, agents: o.Agents, accounts: o.Accounts,
		groups: o.Cgroups, gpus: o.GPUs, meters: o.Meters, checkpoints: o.Checkpoints,
		prober: o.Prober, ports: o.Ports, containers: o.Containers, gpuDriver: o.GPUDriver,
		scripts: o.Scripts,
	}
	m.lastUser.Store(anyUser)
	return m
}

// anyUser is the number of a user who is not root.
const anyUser = 65534

// SavingAttempts returns how many attempts are saved on their way out now.
func (m *Machine) SavingAttempts() int { return int(m.checkpoints.vacating.Load()) }

// Dirs is the directory of a startd, with what lies in it for claims.
type Dirs string

// Claims returns the directory of what a startd must know of claims after a restart.
func (d Dirs) Claims() string { return filepath.Join(string(d), "claims") }

// Scratch returns the directory of the users' own directories.
func (d Dirs) Scratch() string { return filepath.Join(string(d), "scratch") }

// IO returns the directory of captured streams and scripts.
func (d Dirs) IO() string { return filepath.Join(string(d), "io") }

// Checkpoints returns the directory of images.
func (d Dirs) Checkpoints() string { return filepath.Join(string(d), "checkpoints") }

// Containers returns the directory of container images.
func (d Dirs) Containers() string { return filepath.Join(string(d), "containers") }

// InputCache returns the directory of input files for later attempts.
func (d Dirs) InputCache() string { return filepath.Join(string(d), "input-cache") }

// GPUDriver returns the directory of the copy of the GPU driver.
func (d Dirs) GPUDriver() string { return filepath.Join(string(d), "gpu-driver") }

// ClaimIO returns the directory of a claim's attempts, by which their sandboxes are
// known.
func (d Dirs) ClaimIO(id slot.ClaimID) string { return filepath.Join(d.IO(), id.String()) }
