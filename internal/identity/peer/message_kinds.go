package peer

import "slices"

// MessageKind describes who may send one kind of message, and what its receiver compares
// it with before using it.
type MessageKind struct {
	// "Startd.Session" is the request of a method, "ToStartd.claim" a member of a
	// stream's message
	Name         string
	From         []Role
	ComparedWith string // in words; "nothing", with the reason, if the message claims nothing about its sender
}

// MessageKinds returns the register of all kinds of messages between parties. A kind that
// is missing fails a test, so that its author must think about its senders.
func MessageKinds() []MessageKind {
	return slices.Concat(scheddMessages(), cellMessages(), startdMessages(), otherMessages())
}

// scheddMessages returns the messages that users and other schedds send to a schedd.
func scheddMessages() []MessageKind {
	users, schedds := []Role{User}, []Role{Schedd}
	const (
		own     = "who calls, by the kernel or the login: the owner of the jobs"
		anybody = "who calls: what only the owner may see is left out for others"
	)
	return []MessageKind{
		{"Schedd.Submit", users, "who calls: the caller owns the job, whatever its ad says"},
		{"Schedd.SubmitParts", users, "as Schedd.Submit"},
		{"Schedd.KeepScript", users, "nothing: the name is the digest of the text"},
		{"Schedd.PutBlob", users, "who calls: the caller is charged; chunks with their digests"},
		{"Schedd.ListBlobs", users, "who calls: the blobs of the caller"},
		{"Schedd.RemoveBlob", users, "who calls: the blobs of the caller"},
		{"Schedd.SetPackage", users, "who calls: the names of the caller"},
		{"Schedd.ListPackages", users, anybody},
		{"Schedd.ListFlowNodes", users, anybody},
		{"Schedd.Query", users, anybody},
		{"Schedd.Act", users, own + ", or who has the capability"},
		{"Schedd.Watch", users, anybody},
		{"Schedd.Logs", users, own},
		{"Schedd.Why", users, anybody},
		{"Schedd.Events", users, anybody},
		{"Schedd.Ads", users, "nothing: ads are public"},
		{"Schedd.Health", users, "nothing"},
		{"Schedd.Shell", users, own},
		{"Schedd.Cell", users, "who calls: who and trusted are set by the schedd"},
		{"Schedd.CheckpointCell", users, "who calls: who is set by the schedd"},
		{"Schedd.QueryPool", users, anybody},
		{"Schedd.Accounting", users, "who calls: user and trusted are set by the schedd"},
		{"Schedd.ChangeAccounts", users, "who calls: user and trusted are set by the schedd"},
		{"Schedd.LoginToken", users, "who calls: the caller is on the schedd's host"},
		{"Schedd.BeginLogin", []Role{Anonymous}, "nothing: it says who nobody is, and is answered on this host alone"},
		{"Schedd.Login", []Role{Anonymous}, "the secret with the digests of tokens that are not used; an ID token " +
			"with the keys of its provider; a password with PAM; a statement with the key of a valid login"},
		{"Schedd.PilotToken", users, "who calls: the pilots are the caller's"},
		{"Schedd.Logins", users, "who calls: the caller's own logins"},
		{"Schedd.Logout", users, "who calls: the caller's own logins"},
		{"Schedd.Names", users, "nothing: names are public in the pool"},

		{"Neighbour.Query", schedds, "nothing: it is told what everybody may read"},
		{"Neighbour.Why", schedds, "nothing: it is told what everybody may read"},
		{"Neighbour.Events", schedds, "nothing: it is told what everybody may read"},
		{"Neighbour.Act", schedds, "user at the node of the certificate with the capabilities that the leader tells; " +
			"in the queue of the cell, name and uid with those of the job"},
		{"Neighbour.Logs", schedds, "as Neighbour.Act"},
		{"Neighbour.Watch", schedds, "nothing: it is told what everybody may read"},
		{"Neighbour.Shell", schedds, "name and uid with those of the job in the queue of the cell"},
		{"Neighbour.Waits", schedds, "nothing: it is told what everybody may read"},
		{"Neighbour.Submit", schedds, "nothing: a submit node vouches for its users; the execute node compares it " +
			"with the users that it trusts the node to name"},

		{"CellQueue.History", []Role{CellQueue}, "the role: members have the whole queue"},

		{"Feed.Pull", []Role{Accountant}, "the role: it is told what happens to everybody's jobs"},
		{"Feed.Walk", []Role{Accountant}, "the role: likewise"},
		{"Feed.Running", []Role{Accountant}, "the role: likewise"},
		{"Accountant.Report", schedds, "user at the node of the certificate with what is theirs"},
		{"Accountant.Change", schedds, "user at the node of the certificate with the capabilities that the leader " +
			"tells"},

		{"PoolRow.status", schedds,
			"the host in the id with the schedd that was asked, by whose certificate it is known"},
		{"PoolRow.silent", schedds, "nothing: the schedd that the user asks says it itself"},
		{"PoolRow.batch", schedds, "likewise"},
	}
}

// cellMessages returns the messages from and to the daemons of a central manager.
func cellMessages() []MessageKind {
	schedds, guests, negotiators := []Role{Schedd}, []Role{Schedd, Guest}, []Role{Negotiator}
	const (
		greeted  = "the schedd of the conversation: it is about its own requests"
		atLeader = "nothing: it is the caller's copy of what the leader says"
	)
	return []MessageKind{
		{"Collector.Advertise", []Role{Schedd, Startd, Pilot, Negotiator},
			"type with the roles; name, Name and Machine in the ad with the certificate's node and with whose " +
				"the name is; of a pilot, owner and Requirements with the owner in the certificate"},
		{"Collector.Watch", []Role{Negotiator, Schedd, Accountant}, "the role: private attributes are for negotiators"},
		{"Collector.Query", []Role{Schedd, Startd, Negotiator, Collector, Accountant}, "nothing: ads are public"},
		{"Collector.Names", []Role{Schedd}, "nothing: names are public in the pool"},

		{"Negotiator.Negotiate", guests, "name in the hello with the certificate"},
		{"Negotiator.Watch", []Role{Schedd, Guest, Negotiator}, "nothing: who leads is public"},
		{"Negotiator.Cell", []Role{Schedd, Negotiator, Accountant},
			"the node in who with the certificate; trusted counts from negotiators only; the capabilities"},
		{"Negotiator.CheckpointCell", []Role{Schedd, Negotiator},
			"nothing: all of it may be read otherwise; who is for the log"},

		{"Negotiator.ReadSecrets", schedds,
			"host with the certificate, or the role cell-queue; host with the nodes that the secret is for"},
		{"Negotiator.ExchangeKeys", negotiators, "the role: central managers have the keys; each id with its key"},

		{"FromSchedd.hello", guests, "name with the certificate"},
		{"FromSchedd.request", guests, greeted + "; those of a guest are of users and a group of its pool, in " +
			"band free"},
		{"FromSchedd.result", guests, "the grant with those that were made to that schedd"},
		{"FromSchedd.usage", guests, greeted + "; what its users hold is its word, but for guests, for whom the " +
			"ads of " +
			"machines count"},
		{"FromSchedd.why", guests, greeted},
		{"FromSchedd.demand", guests, greeted + "; of guests none is taken in"},
		{"FromSchedd.admit", guests, greeted + "; the quotas; guests are refused"},
		{"FromSchedd.outcome", guests, "one schedd's word counts little: see negotiator/blackhole; guests' does " +
			"not count"},
		{"FromSchedd.told", guests, greeted},
		{"FromSchedd.policy_seen", guests, greeted},

		{"ToSchedd.grant", negotiators, "what is ready of the request, and whose node the machine was; the startd " +
			"checks the capability and the epoch"},
		{"ToSchedd.unplaced", negotiators, atLeader},
		{"ToSchedd.hello", negotiators, "the epoch with the highest that any negotiator has said"},
		{"ToSchedd.admitted", negotiators, "the id with what was asked"},
		{"ToSchedd.policy", negotiators, atLeader},
		{"ToSchedd.kept", negotiators, atLeader},
		{"ToSchedd.room", negotiators, atLeader},

		{"Relay.Listen", []Role{Startd, Pilot}, "the node with the certificate"},
		{"Relay.Accept", []Role{Startd, Pilot}, "the id with the calls for the node of the certificate"},
		{"Relay.Dial", []Role{Schedd, Guest}, "nothing: the node that answers compares the certificate inside"},

		{"Replica.Traffic", negotiators, "to with the id of this replica, and the cell with its own"},
		{"Replica.Hello", negotiators,
			"nothing: whoever asks to be taken in is asked back at its address, and with ids of the cell"},
		{"Replica.Status", negotiators, "nothing"},
		{"Replica.Add", negotiators, "the role: who has the key of a central manager may"},
		{"Replica.Remove", negotiators, "the role: likewise"},
	}
}

// startdMessages returns the messages between a schedd and a startd.
func startdMessages() []MessageKind {
	schedds, startds, own := []Role{Schedd, Guest}, []Role{Startd}, []Role{Schedd}
	const (
		attempt = "schedd with the certificate, and the attempt with those that schedd has here"
		session = "the schedd of the session with that of the claim or attempt"
		node    = "the node of the session with that of the attempt in the queue"
		claim   = "the claim with those that the schedd has on that node"
	)
	return []MessageKind{
		{"Startd.Session", schedds, "schedd in the hello with the certificate, node with this machine"},
		{"Startd.Put", schedds, attempt},
		{"Startd.Fetch", schedds, attempt},
		{"Startd.Tail", schedds, attempt},
		{"Startd.FetchImage", schedds, attempt},
		{"Startd.PutImage", schedds, attempt},
		{"Startd.Shell", schedds, attempt},
		{"Startd.Reach", own,
			"the certificate with the schedd of the job that has called, before the ticket is spent"},
		{"Startd.GetChunks", startds, "nothing: every machine may have every image and package"},
		{"Startd.MoveObjects", own, attempt},

		{"ToStartd.hello", schedds, "schedd with the certificate, node with this machine, incarnation with the last"},
		{"ToStartd.claim", schedds, "the capability, which is over machine, resources, owner and epoch; the grant " +
			"with those that were used; the user with the accounts here"},
		{"ToStartd.activate", schedds, session + ", and the program's user with the claim's"},
		{"ToStartd.vacate", schedds, session},
		{"ToStartd.acknowledge", schedds, session},
		{"ToStartd.release", schedds, session},
		{"ToStartd.renew", schedds, session + ", and the word with those that were said on it"},
		{"ToStartd.launch", schedds, session},
		{"ToStartd.checkpoint", schedds, session},
		{"ToStartd.kept", schedds, session},
		{"ToStartd.freeze", schedds, session},
		{"ToStartd.signal", schedds, session},
		{"ToStartd.message", schedds, session},
		{"ToStartd.limit", schedds, session},
		{"ToStartd.host_files", schedds, session},
		{"ToStartd.hold_checks", schedds, session},
		{"ToStartd.name_right", schedds, session},
		{"ToStartd.resize", schedds, session + ", and the size with what is free, or left of its alloc"},
		{"ToStartd.fetch_content", schedds, session + ", and the attempt with those of that schedd here"},
		{"ToStartd.secrets", schedds, session},

		{"FromStartd.welcome", startds, "node with the machine that was wanted, whose node is in the certificate; " +
			"each claim and attempt with those of that node"},
		{"FromStartd.claim", startds, "the grant with those that this node was asked about"},
		{"FromStartd.started", startds, node},
		{"FromStartd.exited", startds, node},
		{"FromStartd.lost", startds, claim},
		{"FromStartd.renewed", startds, "the word with the last of that session"},
		{"FromStartd.input", startds, node},
		{"FromStartd.taken", startds, node},
		{"FromStartd.usage", startds, node},
		{"FromStartd.ready", startds, claim},
		{"FromStartd.suspended", startds, node},
		{"FromStartd.health", startds, node},
		{"FromStartd.metric", startds, node},
		{"FromStartd.container", startds, node},
		{"FromStartd.reach", startds, node},
		{"FromStartd.resized", startds, node + ", and the size with that which was asked for"},
	}
}

// otherMessages returns the messages to a checkpoint server, to the guard of a machine
// and to the certificate authority.
func otherMessages() []MessageKind {
	users, schedds, startds := []Role{User}, []Role{Schedd}, []Role{Startd}
	nodes := []Role{Collector, Negotiator, Schedd, Startd, CheckpointServer, Accountant}
	all := []Role{Collector, Negotiator, Schedd, Startd, Pilot, CheckpointServer, Accountant}
	machines := []Role{Startd, Pilot, Schedd}
	authorities := []Role{Authority}
	const host = "who calls: the daemons' own user and root of this host"
	return []MessageKind{
		{"CheckpointServer.Put", machines, "the image: see package checkpoint/server"},
		{"CheckpointServer.Get", machines, "the image: see package checkpoint/server"},
		{"CheckpointServer.PutFile", schedds, "as CheckpointServer.GetFile; the contents with their digest"},
		{"CheckpointServer.GetFile", schedds, "the node of the file with the certificate, or the role cell-queue"},
		{"CheckpointServer.RetainFiles", schedds, "as CheckpointServer.GetFile"},
		{"CheckpointServer.GetManifest", machines, "the blob with its digest"},
		{"CheckpointServer.GetChunks", machines, "each chunk with its digest"},
		{"CheckpointServer.PutBlob", schedds, "the node of the user with the certificate; chunks with their digests"},
		{"CheckpointServer.ListBlobs", schedds, "the node of the user with the certificate"},
		{"CheckpointServer.RemoveBlob", schedds, "the node of the user with the certificate"},
		{"CheckpointServer.PinBlobs", schedds, "the node of the pins with the certificate; at most 10,000"},
		{"CheckpointServer.SetPackage", schedds, "the node of the name's owner with the certificate"},
		{"CheckpointServer.ListPackages", machines, "nothing: packages are no secrets"},
		{"CheckpointServer.PlanChunks", startds, "the node of the machine with the certificate"},
		{"CheckpointServer.Remove", schedds, "the schedd of the image with the certificate"},

		{"Guard.Watch", startds, "startd with the names in this host's node file"},
		{"Guard.Pause", users, "who calls: the caller sits at the machine, or is one of its owners"},
		{"Guard.Resume", users, "who calls: likewise"},
		{"Guard.Mine", users, "nothing: all users of the host may see it"},
		{"Guard.Present", users, "who calls: the caller has a session here, and is no task"},

		{"Authority.Greet", []Role{Anonymous}, "nothing"},
		{"Authority.Join", []Role{Anonymous},
			"the secret with the digests of tokens; the name with the token's and with all members'"},
		{"Authority.Renew", nodes, "the certificate: the new one has its name and roles"},
		{"Authority.Leave", all, "the certificate: it leaves itself"},
		{"Authority.Revoked", append([]Role{Guest}, all...), "nothing: the list is public"},
		{"Authority.MakePilotToken", schedds, "the certificate: the pilots run the tasks of its users, from its node"},
		{"Authority.AcceptOffer", []Role{Anonymous}, "the secret with the digests of offers that are not accepted"},
		{"Authority.VouchGuest", schedds, "the certificate: the voucher names its node"},
		{"Authority.CertifyGuest", []Role{Anonymous}, "the signature of the voucher with the certificate of the " +
			"authority that has accepted the offer, and the key with the voucher's"},
		{"Authority.OfferPeer", authorities, host},
		{"Authority.SaveHost", authorities, host},
		{"Authority.ListPeers", authorities, host},
		{"Authority.RevokePeer", authorities, host},
		{"Authority.MakeToken", authorities, host},
		{"Authority.RemoveToken", authorities, host},
		{"Authority.Members", authorities, host},
		{"Authority.Revoke", authorities, host},
	}
}
