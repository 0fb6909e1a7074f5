package transfer

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/checkpoint/store"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/metrics"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/dispatch"
	"github.com/roost-batch/roost/schedd/journal"
	"github.com/roost-batch/roost/schedd/queue"
)

// StartdNode is the startd at the other end of a transfer.
type StartdNode struct {
	Name   string
	Client wire.StartdClient // nil: it cannot be reached
}

// Loop is the schedd's loop. All methods but PostEvent are called in the loop only.
type Loop interface {
	// CommitEvents applies events and has them written with the present batch.
	CommitEvents(events ...queue.JobEvent)
	// AfterCommit runs f when all that was decided so far is on disk.
	AfterCommit(f func())
	// SendTo puts a message on the present session with a node, behind the present batch.
	SendTo(node string, m *wire.ToStartd)
	// PostLater has f run in a later turn.
	PostLater(f func(now time.Time))
	// PostEvent brings an event to the loop. It is false if ctx or the daemon ended
	// before.
	PostEvent(ctx context.Context, event any) bool
	// Node is the connection to a node; nil: there is none.
	Node(name string) *StartdNode
	// RecordEnded records the end of an attempt.
	RecordEnded(a roost.AttemptID, status *wire.ExitStatus, now time.Time)
	// RecordEndedWithRuntime records it with how long the attempt ran, as far as that
	// says something of its node.
	RecordEndedWithRuntime(a roost.AttemptID, x *queue.AttemptExit, ownFiles bool, ran int64, now time.Time)
}

// OutputFetcher fetches the output of an attempt outside the loop; OutputStored follows.
type OutputFetcher interface{ FetchOutput(c *OutputFetch) }

// Config is what FileTransfers needs.
type Config struct {
	Host     string // name of this schedd
	StateDir string // its directory
	Identity *rpc.Identity
	Log      *slog.Logger
	Queue    *queue.Queue
	Dispatch *dispatch.Dispatcher
	Loop     Loop
	Fetcher  OutputFetcher        // nil: this one
	Reserve  *journal.DiskReserve // of the disk
	Users    *UserAgents

	FileServer string // address of the checkpoint server, for scripts of the cell's queue; empty: none
	// returns the addresses of the negotiators, that of the leader first
	Negotiators func(context.Context) ([]string, error)

	ObjectStores []config.ObjectStore // that jobs may name
	OpenObjects  OpenObjectAccount    // nil: none can be reached
	Metrics      *metrics.Schedd      // nil: objects are not counted
}

// FileTransfers moves files of attempts between this host and nodes: scripts and input,
// output, and images of checkpoints. What is below the line belongs to the loop.
type FileTransfers struct {
	host          string
	stateDir      string
	identity      *rpc.Identity
	log           *slog.Logger
	loop          Loop
	fetcher       OutputFetcher
	users         *UserAgents
	SpoolFiles    *SpoolDir
	Scripts       *scriptStore
	slots         *transferSlots
	inputCaches   *nodeCaches  // of machines
	images        *store.Store // checkpoints
	imageSlots    *transferSlots
	imageRemovals imageRemovals   // of images on checkpoint servers
	fileServer    string          // address of the checkpoint server; empty: none
	progress      transferTable   // of what is under way
	daemonContext context.Context // of the daemon
	negotiators   func(context.Context) ([]string, error)
	objects       *objectStores

	// ---- owned by the loop ----
	queue         *queue.Queue
	dispatch      *dispatch.Dispatcher
	domains       map[string]string // node -> its FileSystemDomain
	transfers     map[roost.AttemptID]context.CancelFunc
	outputFetches map[roost.AttemptID]*OutputFetch // outputs on their way home
	imageFetches  map[roost.AttemptID]*imageFetch  // images on their way home
	secrets       map[roost.AttemptID]heldSecrets
	secretsDigest uint64 // of the newest cell policy; 0: no secret is known
	secretsStale  bool   // attempts may have older versions than the pool
	// secretsRenewing: those of the attempts are being read again
	secretsRenewing bool
	mpiNetwork      string // of the newest cell policy; empty: any
}

// SetMPINetwork has later attempts told of the network that MPI programs talk on.
func SetMPINetwork(t *FileTransfers, network string) { t.mpiNetwork = network }

// New returns one that has nothing under way.
func New(c Config) *FileTransfers {
	t := &FileTransfers{
		host: c.Host, stateDir: c.StateDir, identity: c.Identity, log: c.Log, loop: c.Loop, fetcher: c.Fetcher,
		users: c.Users, fileServer: c.FileServer, negotiators: c.Negotiators, queue: c.Queue, dispatch: c.Dispatch,
		SpoolFiles:    &SpoolDir{filepath.Join(c.StateDir, "spool"), c.Reserve},
		Scripts:       &scriptStore{filepath.Join(c.StateDir, "scripts")},
		slots:         newTransferSlots(maxTransfers),
		inputCaches:   newNodeCaches(),
		imageSlots:    newTransferSlots(maxImages),
		domains:       make(map[string]string),
		transfers:     make(map[roost.AttemptID]context.CancelFunc),
		outputFetches: make(map[roost.AttemptID]*OutputFetch),
		imageFetches:  make(map[roost.AttemptID]*imageFetch),
		secrets:       make(map[roost.AttemptID]heldSecrets),
	}
	t.objects = &objectStores{transfers: t, settings: c.ObjectStores, open: c.OpenObjects, metrics: c.Metrics,
		accounts: map[objectUser]*objectAccount{}}
	if t.fetcher == nil {
		t.fetcher = t
	}
	return t
}

// Start gives transfers the context of the daemon, which they end with.
func (t *FileTransfers) Start(ctx context.Context) {
	t.daemonContext = ctx
	if t.objects.open != nil && len(t.objects.settings) > 0 {
		go t.objects.sweepUploads(ctx)
	}
}

// FetchOutput implements OutputFetcher.
func (t *FileTransfers) FetchOutput(c *OutputFetch) {
	ctx := t.startTransfer(c.Attempt)
	t.outputFetches[c.Attempt] = c // the start has ended a transfer before it, and its entry
	go func() {
		err := c.fetchAll(ctx)
		t.loop.PostEvent(t.daemonContext, OutputStored{c.Peer.Name, c.Attempt, c.Exited, err, c.spoolReason, c.stored})
	}()
}

// SetDomain notes the FileSystemDomain of a node.
func (t *FileTransfers) SetDomain(node, domain string) { t.domains[node] = domain }

// UsesScratch reports whether a program runs in a directory of its own on a node, so that
// its files travel.
func (t *FileTransfers) UsesScratch(p queue.TaskProgram, node string) bool {
	return t.filesFor(p, node).scratch
}

// EndAttempt ends what is on its way of an attempt that is lost.
func (t *FileTransfers) EndAttempt(a roost.AttemptID) {
	t.StopTransfer(a)
	t.cancelImageFetch(a)
	delete(t.secrets, a)
}

// HasTransfer reports whether files of an attempt are on their way.
func (t *FileTransfers) HasTransfer(a roost.AttemptID) bool { return t.transfers[a] != nil }
