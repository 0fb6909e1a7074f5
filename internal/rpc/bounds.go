package rpc

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/roost-batch/roost/internal/wire"
)

// Bounds on one connection. roost-security(7) has them all, with those of other packages.
const (
	handshakeTimeout = 5 * time.Second  // TLS takes two journeys: who needs longer is not going to come
	maxHeaders       = 16 << 10         // bytes; ours have a few hundred
	maxStreams       = 1024             // calls at once on one connection
	maxIdle          = 10 * time.Minute // without a call: clients connect again by themselves
	pingAfter        = 20 * time.Second // of silence; whoever does not answer within pingTimeout is gone
	pingTimeout      = 10 * time.Second
	pingLeast        = 5 * time.Second // between pings of a client
	window           = 1 << 20         // bytes that may be under way on a call before somebody takes them; it does not grow
)

// Bounds on all connections of one server. A user's are counted by uid and a node's by name. Whoever could stop the daemon anyway, its own user and root,
// is not counted.
const (
	maxHandshakes    = 1024 // unfinished ones in all; one more ends the oldest: honest ones are over in milliseconds
	maxHandshakesOf  = 128  // of one address
	maxConnsOf       = 1024 // of one user or node: each program that waits for a job has one
	maxCallsOf       = 1024 // at once
	maxUploadsOf     = 128  // calls of one user that send more than one message, at once
	maxConnsFraction = 0.75 // of the descriptors that the process may have; users together get a third of these
)

// Bounds on the time of one call.
const (
	arriveTimeout   = 30 * time.Second // for the last byte of the request, where there is one request; it has 4 MiB at most
	slowNode        = time.Minute      // for a daemon to take what was sent to it
	slowUser        = 5 * time.Minute  // for a user: his output may stand still while he reads a page
	maxMessage      = 64 << 20         // bytes: of a submission, and of what clients take
	maxReply        = maxMessage / 2   // of what our own servers send to them
	small, ordinary = 64 << 10, 4 << 20
	program         = 32 << 20 // an ad, and a script in it: roost.MaxAdBytes of each
	sessions        = program  // with a negotiator: a request has the ad of a job
)

// Bounds on the bytes of requests that a server holds. A call waits until they allow its request.
const (
	maxHeldOf = 96 << 20  // of one user or node: a submission of the longest kind, and some more
	maxHeld   = 384 << 20 // of all
)

// Program and Sessions are the options of a server whose peers send longer messages than others: of a startd, and of a negotiator.
func Program() grpc.ServerOption  { return grpc.MaxRecvMsgSize(program) }
func Sessions() grpc.ServerOption { return grpc.MaxRecvMsgSize(sessions) }

// PartSize is how many bytes of a long list travel in one message.
const PartSize = 1 << 20

// sizes says how many bytes a message to each method may have. A longer one is refused before it is parsed.
func sizes() map[string]int {
	const (
		schedd     = "/roost.wire.Schedd/"
		collector  = "/roost.wire.Collector/"
		negotiator = "/roost.wire.Negotiator/"
		startd     = "/roost.wire.Startd/"
		replica    = "/roost.wire.Replica/"
		neighbour  = "/roost.wire.Neighbour/"
		images     = "/roost.wire.CheckpointServer/"
		guard      = "/roost.wire.Guard/"
		authority  = "/roost.wire.Authority/"
	)
	return map[string]int{
		schedd + "Submit":         ordinary,
		schedd + "SubmitParts":    ordinary, // pieces of 1 MiB; in all maxMessage: a million tasks with a column of values
		schedd + "KeepScript":     ordinary, // pieces of 256 KiB
		schedd + "QueryPool":      ordinary,
		schedd + "Query":          ordinary, // selections are as long as a command line can be, 2 MiB
		schedd + "Act":            ordinary,
		schedd + "Watch":          ordinary,
		schedd + "Logs":           ordinary,
		schedd + "Why":            small,
		schedd + "Events":         ordinary,
		schedd + "Ads":            ordinary,
		schedd + "Health":         small,
		schedd + "Shell":          ordinary, // a command of 1 MiB
		schedd + "Cell":           ordinary, // an object of 1 MiB
		schedd + "CheckpointCell": small,

		schedd + "LoginToken": small,
		schedd + "Login":      small,
		schedd + "Logins":     small,
		schedd + "Logout":     small,

		neighbour + "Query":  ordinary,
		neighbour + "Why":    small,
		neighbour + "Events": ordinary,
		neighbour + "Act":    ordinary,

		collector + "Advertise": ordinary, // an ad of 1 MiB with private attributes of 1 MiB
		collector + "Watch":     small,
		collector + "Query":     ordinary,

		negotiator + "Negotiate":      sessions,
		negotiator + "Watch":          small,
		negotiator + "Cell":           ordinary,
		negotiator + "CheckpointCell": small,

		replica + "Traffic": ordinary, // pieces of 64 KiB
		replica + "Hello":   small,
		replica + "Status":  small,
		replica + "Add":     small,
		replica + "Remove":  small,

		startd + "Session":    program,
		startd + "Put":        ordinary, // pieces of 256 KiB
		startd + "Fetch":      ordinary,
		startd + "Tail":       small,
		startd + "FetchImage": small,
		startd + "PutImage":   ordinary,
		startd + "Shell":      ordinary,
		startd + "Reach":      ordinary, // a command of 1 MiB, and what it writes

		guard + "Watch":   ordinary,
		guard + "Pause":   small,
		guard + "Resume":  small,
		guard + "Mine":    small,
		guard + "Present": small,

		authority + "Greet":       small,
		authority + "Join":        small,
		authority + "Renew":       small,
		authority + "Leave":       small,
		authority + "Revoked":     small,
		authority + "MakeToken":   small,
		authority + "RemoveToken": small,
		authority + "Members":     small,
		authority + "Revoke":      small,

		images + "Put":    ordinary, // pieces of 256 KiB
		images + "Get":    small,
		images + "Remove": small,
	}
}

// bounded is what the descriptors of the services and sizes say together.
type bounded struct {
	once map[string]bool               // methods with one request, which arrives within arriveTimeout
	most map[protoreflect.FullName]int // bytes of a message; of a type that several methods take, the most of them
}

func bounds() bounded {
	b := bounded{map[string]bool{}, map[protoreflect.FullName]int{}}
	most := sizes()
	services := wire.File_roost_proto.Services()
	for i := range services.Len() {
		methods := services.Get(i).Methods()
		for j := range methods.Len() {
			m := methods.Get(j)
			name := "/" + string(services.Get(i).FullName()) + "/" + string(m.Name())
			b.once[name] = !m.IsStreamingClient()
			in := m.Input().FullName()
			b.most[in] = max(b.most[in], most[name])
		}
	}
	return b
}
