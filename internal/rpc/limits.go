package rpc

import (
	"maps"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc/localrpc"
	"github.com/roost-batch/roost/internal/wire"
)

// Bounds on one connection. roost-security(7) lists all of them, with those of other
// packages.
const (
	handshakeTimeout = 5 * time.Second  // TLS takes two round trips: a slower client is no honest one
	maxHeaders       = 16 << 10         // bytes; Roost's own have a few hundred
	maxStreams       = 1024             // calls in progress on one connection
	maxIdle          = 10 * time.Minute // without a call: clients reconnect by themselves
	pingInterval     = localrpc.PingInterval
	pingTimeout      = localrpc.PingTimeout
	minPingInterval  = 5 * time.Second // between pings of a client
	// Pings of a client to a startd. After roost.SilentAfter without a word the
	// connection breaks, and so the machine is silent here when its names are lost
	// (package names). gRPC allows no shorter interval. See WithMachinePings.
	nodePingInterval = 10 * time.Second
	nodePingTimeout  = roost.SilentAfter - nodePingInterval
	// pings of a startd to its clients
	machinePingInterval = 4 * time.Second
	machinePingTimeout  = pingInterval + pingTimeout - machinePingInterval
	// bytes in flight on a call before they are read; it does not grow
	streamWindow = localrpc.StreamWindow
	// the same for what a client receives; with windows that do not grow, gRPC need not
	// measure the connection, for which it sends a ping with each message that arrives
	clientWindow = 4 << 20
)

// Buffers between a connection and its frames, in bytes. gRPC's default is 32 KiB, and a
// connection holds its buffer while it waits: that is 32 MiB for the sessions of a schedd
// with a thousand startds, or for the ads of that number at a collector. A longer frame
// is read past the buffer, so a small one costs a little only where many short messages
// come at once. TLS has a buffer of its own, which saves system calls.
const (
	serverReadBuffer = 8 << 10
	tlsReadBuffer    = 2 << 10 // of a client
)

// Bounds on all connections of one server. A user's are counted by uid and a node's by
// name. The daemon's own user and root are not counted, because they could stop the
// daemon anyway.
const (
	// unfinished handshakes in total; one more closes the oldest: an honest one takes
	// milliseconds
	maxHandshakes        = 1024
	maxHandshakesPerAddr = 128  // of one address
	maxConnsPerPeer      = 1024 // of one user or node: each program that waits for a job has one
	maxCallsPerPeer      = 1024 // calls in progress
	maxUploadsPerUser    = 128  // calls in progress of one user that send more than one message
	maxConnsFraction     = 0.75 // of the process's limit of descriptors; all users together get a third of these
)

// Bounds on the time of one call.
const (
	// until the last byte of a single request has arrived; it has at most 4 MiB
	requestTimeout  = 30 * time.Second
	nodeSendTimeout = time.Minute // for a daemon to receive a message
	// for a user: output may wait while the user reads a page
	userSendTimeout                       = 5 * time.Minute
	maxMessageSize                        = localrpc.MaxMessageSize // bytes of a submission, and of replies to clients
	maxReplySize                          = maxMessageSize / 2      // bytes of replies of Roost's own servers
	smallMessageSize, ordinaryMessageSize = 64 << 10, 4 << 20
	programMessageSize                    = 32 << 20 // bytes of an ad and a script: roost.MaxAdBytes of each
	// bytes of messages to a negotiator: a request has the ad of a job
	sessionMessageSize = programMessageSize
)

// Bounds on the bytes of requests that a server holds. A call waits until they allow its
// request.
const (
	maxIntakePerPeer = 96 << 20  // of one user or node: a little more than the largest submission
	maxIntake        = 384 << 20 // of all peers
)

// WithProgramSizes is the option of a startd's server, whose peers send longer messages
// than others. WithSessionSizes is the option of a negotiator's.
func WithProgramSizes() grpc.ServerOption { return grpc.MaxRecvMsgSize(programMessageSize) }
func WithSessionSizes() grpc.ServerOption { return grpc.MaxRecvMsgSize(sessionMessageSize) }

// WithMachinePings has a startd ping its clients as often as it renews its names. With
// the pings of its clients alone, a machine that is busy for five seconds could be
// silent to them: they first ask after ten seconds without a word. So it is after
// eleven, as for its names.
func WithMachinePings() grpc.ServerOption {
	return grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: maxIdle, Time: machinePingInterval,
		Timeout: machinePingTimeout})
}

// PartSize is the bytes of a long list in one message.
const PartSize = 1 << 20

// messageSizes returns the most bytes of a message to each method. A longer one is
// refused before it is parsed.
func messageSizes() map[string]int {
	all := map[string]int{}
	for _, t := range []map[string]int{scheddSizes(), cellSizes(), machineSizes(), authoritySizes()} {
		maps.Copy(all, t)
	}
	return all
}

// scheddSizes returns the sizes of messages to a schedd.
func scheddSizes() map[string]int {
	const (
		schedd     = "/roost.wire.Schedd/"
		peerSchedd = "/roost.wire.Neighbour/"
		feed       = "/roost.wire.Feed/"
		accountant = "/roost.wire.Accountant/"
	)
	return map[string]int{
		schedd + "Submit": ordinaryMessageSize,
		// parts of 1 MiB; in total maxMessageSize: a million tasks with a column of
		// values
		schedd + "SubmitParts":    ordinaryMessageSize,
		schedd + "KeepScript":     ordinaryMessageSize, // parts of 256 KiB
		schedd + "PutBlob":        ordinaryMessageSize, // parts of 256 KiB, and a manifest
		schedd + "ListBlobs":      smallMessageSize,
		schedd + "RemoveBlob":     smallMessageSize,
		schedd + "SetPackage":     ordinaryMessageSize, // with the environment of an image
		schedd + "ListPackages":   smallMessageSize,
		schedd + "ListFlowNodes":  ordinaryMessageSize,
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

		schedd + "Accounting":     smallMessageSize,
		schedd + "ChangeAccounts": smallMessageSize,
		schedd + "LoginToken":     smallMessageSize,
		schedd + "BeginLogin":     smallMessageSize,
		schedd + "Login":          smallMessageSize,
		schedd + "Logins":         smallMessageSize,
		schedd + "PilotToken":     smallMessageSize,
		schedd + "Logout":         smallMessageSize,
		schedd + "Names":          smallMessageSize,

		"/roost.wire.CellQueue/History": smallMessageSize,

		peerSchedd + "Query":  ordinaryMessageSize,
		peerSchedd + "Why":    smallMessageSize,
		peerSchedd + "Events": ordinaryMessageSize,
		peerSchedd + "Act":    ordinaryMessageSize,
		peerSchedd + "Logs":   smallMessageSize,
		peerSchedd + "Watch":  ordinaryMessageSize,
		peerSchedd + "Shell":  ordinaryMessageSize, // a command of 1 MiB
		peerSchedd + "Waits":  smallMessageSize,
		peerSchedd + "Submit": ordinaryMessageSize, // many of them are in one entry of a replicated log

		feed + "Pull":         ordinaryMessageSize, // 10,000 spent budgets
		feed + "Walk":         smallMessageSize,
		feed + "Running":      smallMessageSize,
		accountant + "Report": smallMessageSize,
		accountant + "Change": smallMessageSize,
	}
}

// cellSizes returns the sizes of messages to the daemons of a central manager.
func cellSizes() map[string]int {
	const (
		collector  = "/roost.wire.Collector/"
		negotiator = "/roost.wire.Negotiator/"
		replica    = "/roost.wire.Replica/"
		relay      = "/roost.wire.Relay/"
	)
	return map[string]int{
		collector + "Advertise": ordinaryMessageSize, // an ad of 1 MiB with private attributes of 1 MiB
		collector + "Watch":     smallMessageSize,
		collector + "Query":     ordinaryMessageSize,
		collector + "Names":     smallMessageSize,

		negotiator + "Negotiate":      sessionMessageSize,
		negotiator + "Watch":          smallMessageSize,
		negotiator + "Cell":           ordinaryMessageSize,
		negotiator + "CheckpointCell": smallMessageSize,
		negotiator + "ReadSecrets":    smallMessageSize,
		negotiator + "ExchangeKeys":   smallMessageSize, // 100 keys

		replica + "Traffic": ordinaryMessageSize, // parts of 64 KiB
		replica + "Hello":   smallMessageSize,
		replica + "Status":  smallMessageSize,
		replica + "Add":     smallMessageSize,
		replica + "Remove":  smallMessageSize,

		relay + "Listen": smallMessageSize,
		relay + "Accept": ordinaryMessageSize, // parts of 64 KiB, likewise of Dial
		relay + "Dial":   ordinaryMessageSize,
	}
}

// machineSizes returns the sizes of messages to the daemons of an execute node and to a
// checkpoint server.
func machineSizes() map[string]int {
	const (
		startd = "/roost.wire.Startd/"
		guard  = "/roost.wire.Guard/"
		images = "/roost.wire.CheckpointServer/"
	)
	return map[string]int{
		startd + "Session":     programMessageSize,
		startd + "Put":         ordinaryMessageSize, // parts of 256 KiB
		startd + "Fetch":       ordinaryMessageSize,
		startd + "Tail":        smallMessageSize,
		startd + "FetchImage":  smallMessageSize,
		startd + "PutImage":    ordinaryMessageSize,
		startd + "Shell":       ordinaryMessageSize,
		startd + "Reach":       ordinaryMessageSize, // a command of 1 MiB, and its output
		startd + "GetChunks":   smallMessageSize,
		startd + "MoveObjects": ordinaryMessageSize,

		guard + "Watch":   ordinaryMessageSize,
		guard + "Pause":   smallMessageSize,
		guard + "Resume":  smallMessageSize,
		guard + "Mine":    smallMessageSize,
		guard + "Present": smallMessageSize,

		images + "Put":          ordinaryMessageSize, // parts of 256 KiB
		images + "Get":          smallMessageSize,
		images + "PutFile":      ordinaryMessageSize, // parts of 256 KiB
		images + "GetFile":      smallMessageSize,
		images + "RetainFiles":  ordinaryMessageSize,
		images + "GetManifest":  smallMessageSize,
		images + "GetChunks":    ordinaryMessageSize, // a number for each chunk
		images + "PutBlob":      ordinaryMessageSize, // parts of 256 KiB, and a manifest
		images + "ListBlobs":    smallMessageSize,
		images + "RemoveBlob":   smallMessageSize,
		images + "PinBlobs":     ordinaryMessageSize, // 10,000 digests
		images + "SetPackage":   ordinaryMessageSize, // with the environment of an image
		images + "ListPackages": smallMessageSize,
		images + "PlanChunks":   smallMessageSize, // a bit for each chunk, and the digests of 256 blobs
		images + "Remove":       smallMessageSize,
	}
}

// authoritySizes returns the sizes of messages to the certificate authority.
func authoritySizes() map[string]int {
	const authority = "/roost.wire.Authority/"
	return map[string]int{
		authority + "Greet":       smallMessageSize,
		authority + "Join":        smallMessageSize,
		authority + "Renew":       smallMessageSize,
		authority + "Leave":       smallMessageSize,
		authority + "Revoked":     smallMessageSize,
		authority + "MakeToken":   smallMessageSize,
		authority + "RemoveToken": smallMessageSize,
		authority + "Members":     smallMessageSize,
		authority + "Revoke":      smallMessageSize,

		authority + "MakePilotToken": smallMessageSize,

		authority + "AcceptOffer":  smallMessageSize,
		authority + "VouchGuest":   smallMessageSize,
		authority + "CertifyGuest": smallMessageSize,
		authority + "OfferPeer":    smallMessageSize,
		authority + "SaveHost":     smallMessageSize,
		authority + "ListPeers":    smallMessageSize,
		authority + "RevokePeer":   smallMessageSize,
	}
}

// methodLimits combines the descriptors of the services with messageSizes.
type methodLimits struct {
	unary    map[string]bool               // methods with one request, which must arrive within requestTimeout
	maxBytes map[protoreflect.FullName]int // bytes of a message type; the most of all methods that take it
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
