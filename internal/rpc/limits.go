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
	pingInterval     = 20 * time.Second // of silence; whoever does not answer within pingTimeout is gone
	pingTimeout      = 10 * time.Second
	minPingInterval  = 5 * time.Second // between pings of a client
	// bytes that may be under way on a call before somebody takes them; it does not grow
	streamWindow = 1 << 20
)

// Bounds on all connections of one server. A user's are counted by uid and a node's by
// name. Whoever could stop the daemon anyway, its own user and root, is not counted.
const (
	// unfinished ones in all; one more ends the oldest: honest ones are over in
	// milliseconds
	maxHandshakes        = 1024
	maxHandshakesPerAddr = 128  // of one address
	maxConnsPerPeer      = 1024 // of one user or node: each program that waits for a job has one
	maxCallsPerPeer      = 1024 // at once
	maxUploadsPerUser    = 128  // calls of one user that send more than one message, at once
	maxConnsFraction     = 0.75 // of the descriptors that the process may have; users together get a third of these
)

// Bounds on the time of one call.
const (
	// for the last byte of the request, where there is one request; it has 4 MiB at most
	requestTimeout  = 30 * time.Second
	nodeSendTimeout = time.Minute // for a daemon to take what was sent to it
	// for a user: his output may stand still while he reads a page
	userSendTimeout                       = 5 * time.Minute
	maxMessageSize                        = 64 << 20           // bytes: of a submission, and of what clients take
	maxReplySize                          = maxMessageSize / 2 // of what our own servers send to them
	smallMessageSize, ordinaryMessageSize = 64 << 10, 4 << 20
	programMessageSize                    = 32 << 20           // an ad, and a script in it: roost.MaxAdBytes of each
	sessionMessageSize                    = programMessageSize // with a negotiator: a request has the ad of a job
)

// Bounds on the bytes of requests that a server holds. A call waits until they allow its
// request.
const (
	maxIntakePerPeer = 96 << 20  // of one user or node: a submission of the longest kind, and some more
	maxIntake        = 384 << 20 // of all
)

// WithProgramSizes and WithSessionSizes are the options of a server whose peers send
// longer messages than others: of a startd, and of a negotiator.
func WithProgramSizes() grpc.ServerOption { return grpc.MaxRecvMsgSize(programMessageSize) }
func WithSessionSizes() grpc.ServerOption { return grpc.MaxRecvMsgSize(sessionMessageSize) }

// PartSize is how many bytes of a long list travel in one message.
const PartSize = 1 << 20

// messageSizes says how many bytes a message to each method may have. A longer one is
// refused before it is parsed.
func messageSizes() map[string]int {
	const (
		schedd     = "/roost.wire.Schedd/"
		collector  = "/roost.wire.Collector/"
		negotiator = "/roost.wire.Negotiator/"
		startd     = "/roost.wire.Startd/"
		replica    = "/roost.wire.Replica/"
		peerSchedd = "/roost.wire.Neighbour/"
		images     = "/roost.wire.CheckpointServer/"
		guard      = "/roost.wire.Guard/"
		authority  = "/roost.wire.Authority/"
	)
	return map[string]int{
		schedd + "Submit": ordinaryMessageSize,
		// pieces of 1 MiB; in all maxMessageSize: a million tasks with a column of values
		schedd + "SubmitParts":    ordinaryMessageSize,
		schedd + "KeepScript":     ordinaryMessageSize, // pieces of 256 KiB
		schedd + "QueryPool":      ordinaryMessageSize,
		schedd + "Query":          ordinaryMessageSize, // selections are as long as a command line can be, 2 MiB
		schedd + "Act":            ordinaryMessageSize,
		schedd + "Watch":          ordinaryMessageSize,
		schedd + "Logs":           ordinaryMessageSize,
		schedd + "Why":            smallMessageSize,
		schedd + "Events":         ordinaryMessageSize,
		schedd + "Ads":            ordinaryMessageSize,
		schedd + "Health":         smallMessageSize,
		schedd + "Shell":          ordinaryMessageSize, // a command of 1 MiB
		schedd + "Cell":           ordinaryMessageSize, // an object of 1 MiB
		schedd + "CheckpointCell": smallMessageSize,

		schedd + "LoginToken": smallMessageSize,
		schedd + "Login":      smallMessageSize,
		schedd + "Logins":     smallMessageSize,
		schedd + "Logout":     smallMessageSize,

		peerSchedd + "Query":  ordinaryMessageSize,
		peerSchedd + "Why":    smallMessageSize,
		peerSchedd + "Events": ordinaryMessageSize,
		peerSchedd + "Act":    ordinaryMessageSize,

		collector + "Advertise": ordinaryMessageSize, // an ad of 1 MiB with private attributes of 1 MiB
		collector + "Watch":     smallMessageSize,
		collector + "Query":     ordinaryMessageSize,

		negotiator + "Negotiate":      sessionMessageSize,
		negotiator + "Watch":          smallMessageSize,
		negotiator + "Cell":           ordinaryMessageSize,
		negotiator + "CheckpointCell": smallMessageSize,

		replica + "Traffic": ordinaryMessageSize, // pieces of 64 KiB
		replica + "Hello":   smallMessageSize,
		replica + "Status":  smallMessageSize,
		replica + "Add":     smallMessageSize,
		replica + "Remove":  smallMessageSize,

		startd + "Session":    programMessageSize,
		startd + "Put":        ordinaryMessageSize, // pieces of 256 KiB
		startd + "Fetch":      ordinaryMessageSize,
		startd + "Tail":       smallMessageSize,
		startd + "FetchImage": smallMessageSize,
		startd + "PutImage":   ordinaryMessageSize,
		startd + "Shell":      ordinaryMessageSize,
		startd + "Reach":      ordinaryMessageSize, // a command of 1 MiB, and what it writes

		guard + "Watch":   ordinaryMessageSize,
		guard + "Pause":   smallMessageSize,
		guard + "Resume":  smallMessageSize,
		guard + "Mine":    smallMessageSize,
		guard + "Present": smallMessageSize,

		authority + "Greet":       smallMessageSize,
		authority + "Join":        smallMessageSize,
		authority + "Renew":       smallMessageSize,
		authority + "Leave":       smallMessageSize,
		authority + "Revoked":     smallMessageSize,
		authority + "MakeToken":   smallMessageSize,
		authority + "RemoveToken": smallMessageSize,
		authority + "Members":     smallMessageSize,
		authority + "Revoke":      smallMessageSize,

		images + "Put":    ordinaryMessageSize, // pieces of 256 KiB
		images + "Get":    smallMessageSize,
		images + "Remove": smallMessageSize,
	}
}

// methodLimits is what the descriptors of the services and sizes say together.
type methodLimits struct {
	unary    map[string]bool               // methods with one request, which arrives within requestTimeout
	maxBytes map[protoreflect.FullName]int // bytes of a message; of a type that several methods take, the most of them
}

func newMethodLimits() methodLimits {
	b := methodLimits{map[string]bool{}, map[protoreflect.FullName]int{}}
	most := messageSizes()
	services := wire.File_roost_proto.Services()
	for i := range services.Len() {
		methods := services.Get(i).Methods()
		for j := range methods.Len() {
			m := methods.Get(j)
			name := "/" + string(services.Get(i).FullName()) + "/" + string(m.Name())
			b.unary[name] = !m.IsStreamingClient()
			in := m.Input().FullName()
			b.maxBytes[in] = max(b.maxBytes[in], most[name])
		}
	}
	return b
}
