package peer

import "maps"

// AccessTable lists the roles that may call each method.
type AccessTable map[string][]Role

// MethodAccess returns the table of all services. A method that is not in it is denied to
// every peer.
func MethodAccess() AccessTable {
	all := AccessTable{}
	for _, t := range []AccessTable{scheddAccess(), cellAccess(), machineAccess(), authorityAccess()} {
		maps.Copy(all, t)
	}
	return all
}

// scheddAccess returns the table of the services of a schedd, for its users and for other
// schedds.
func scheddAccess() AccessTable {
	const (
		schedd     = "/roost.wire.Schedd/"
		peerSchedd = "/roost.wire.Neighbour/"
		feed       = "/roost.wire.Feed/"
		accountant = "/roost.wire.Accountant/"
	)
	return AccessTable{
		schedd + "Submit":         {User},
		schedd + "SubmitParts":    {User},
		schedd + "KeepScript":     {User},
		schedd + "PutBlob":        {User}, // the schedd says for whom
		schedd + "ListBlobs":      {User}, // likewise
		schedd + "RemoveBlob":     {User}, // likewise
		schedd + "SetPackage":     {User}, // likewise
		schedd + "ListPackages":   {User},
		schedd + "ListFlowNodes":  {User},
		schedd + "Query":          {User},
		schedd + "Act":            {User},
		schedd + "Watch":          {User},
		schedd + "Logs":           {User},
		schedd + "Why":            {User},
		schedd + "Events":         {User},
		schedd + "Ads":            {User},
		schedd + "Health":         {User},
		schedd + "Shell":          {User},
		schedd + "Cell":           {User},
		schedd + "CheckpointCell": {User}, // its contents are readable by every user in other ways

		schedd + "QueryPool":      {User},
		schedd + "Accounting":     {User},      // the accountant decides what the caller may read
		schedd + "ChangeAccounts": {User},      // the accountant decides who may
		schedd + "LoginToken":     {User},      // the schedd checks that the caller is on its host
		schedd + "BeginLogin":     {Anonymous}, // the schedd checks that the caller is on its host
		schedd + "Login":          {Anonymous}, // the schedd checks that the caller has a token or another proof
		schedd + "Logins":         {User},
		schedd + "PilotToken":     {User}, // for pilots of the caller
		schedd + "Logout":         {User},
		schedd + "Names":          {User},

		// Answers to these calls are public. A schedd has no rights of its own over jobs,
		// only those of the user for whom it acts.
		peerSchedd + "Query":  {Schedd},
		peerSchedd + "Why":    {Schedd},
		peerSchedd + "Events": {Schedd},
		peerSchedd + "Act":    {Schedd}, // the schedd checks the rights of the user for whom the caller acts
		peerSchedd + "Logs":   {Schedd}, // as Act
		peerSchedd + "Watch":  {Schedd},
		peerSchedd + "Waits":  {Schedd},
		peerSchedd + "Shell":  {Schedd}, // in the queue of the cell, for the owner of the task
		peerSchedd + "Submit": {Schedd}, // only the queue of the cell takes jobs from other nodes

		feed + "Pull":    {Accountant},
		feed + "Walk":    {Accountant},
		feed + "Running": {Accountant},

		// a schedd has no rights of its own over accounts, only those of the user for
		// whom it acts
		accountant + "Report": {Schedd},
		accountant + "Change": {Schedd},
	}
}

// cellAccess returns the table of the services of a central manager.
func cellAccess() AccessTable {
	const (
		collector  = "/roost.wire.Collector/"
		negotiator = "/roost.wire.Negotiator/"
		replica    = "/roost.wire.Replica/"
		cellQueue  = "/roost.wire.CellQueue/"
		relay      = "/roost.wire.Relay/"
	)
	return AccessTable{
		collector + "Advertise": {Schedd, Startd, Pilot, Negotiator}, // a pilot's ad says whose it is
		collector + "Watch":     {Negotiator, Schedd, Accountant},
		collector + "Query":     {Schedd, Startd, Negotiator, Collector, Accountant},
		collector + "Names":     {Schedd},

		negotiator + "Negotiate":      {Schedd, Guest}, // a guest as one of its own pool
		negotiator + "Watch":          {Schedd, Guest, Negotiator},
		negotiator + "Cell":           {Schedd, Negotiator, Accountant}, // the ledger decides what a user may change
		negotiator + "CheckpointCell": {Schedd, Negotiator},
		negotiator + "ReadSecrets":    {Schedd}, // the negotiator checks whose jobs the schedd has
		negotiator + "ExchangeKeys":   {Negotiator},

		cellQueue + "History": {CellQueue},

		replica + "Traffic": {Negotiator},
		replica + "Hello":   {Negotiator},
		replica + "Status":  {Negotiator}, // all nodes that have the key of a central manager
		replica + "Add":     {Negotiator},
		replica + "Remove":  {Negotiator},

		relay + "Listen": {Startd, Pilot}, // each for its own node
		relay + "Accept": {Startd, Pilot}, // only what was meant for its node
		relay + "Dial":   {Schedd, Guest},
	}
}

// machineAccess returns the table of the services of an execute node and of a checkpoint
// server.
func machineAccess() AccessTable {
	const (
		startd = "/roost.wire.Startd/"
		guard  = "/roost.wire.Guard/"
		images = "/roost.wire.CheckpointServer/"
	)
	return AccessTable{
		startd + "Session":     {Schedd, Guest}, // each schedd has its own claims and attempts
		startd + "Put":         {Schedd, Guest},
		startd + "Fetch":       {Schedd, Guest},
		startd + "Tail":        {Schedd, Guest},
		startd + "FetchImage":  {Schedd, Guest},
		startd + "PutImage":    {Schedd, Guest},
		startd + "Shell":       {Schedd, Guest},
		startd + "Reach":       {Schedd},
		startd + "GetChunks":   {Startd}, // images and packages are no secrets among machines
		startd + "MoveObjects": {Schedd},

		guard + "Watch":  {Startd}, // on this host: the guard has only a unix socket
		guard + "Pause":  {User},   // the guard checks that the caller sits at the machine, for Resume, too
		guard + "Resume": {User},
		guard + "Mine":   {User},

		guard + "Present": {User}, // the guard checks that the caller has a session on this machine

		images + "Put":          {Startd, Pilot, Schedd},
		images + "Get":          {Startd, Pilot, Schedd},
		images + "PutFile":      {Schedd}, // the server checks the node of the file, or that it is the cell's queue
		images + "GetFile":      {Schedd}, // likewise
		images + "RetainFiles":  {Schedd},
		images + "GetManifest":  {Startd, Pilot, Schedd}, // images and packages are no secrets
		images + "GetChunks":    {Startd, Pilot, Schedd},
		images + "PutBlob":      {Schedd},                // the server charges a user of the node that calls
		images + "ListBlobs":    {Schedd},                // only those of a user of the node that calls
		images + "RemoveBlob":   {Schedd},                // likewise
		images + "PinBlobs":     {Schedd},                // only the pins of the node that calls
		images + "SetPackage":   {Schedd},                // only what a user of the node that calls has named
		images + "ListPackages": {Startd, Pilot, Schedd}, // packages are no secrets
		images + "PlanChunks":   {Startd},                // the server checks that it is the node of the machine
		images + "Remove":       {Schedd},                // the server checks that the schedd owns the image
	}
}

// authorityAccess returns the table of the service of the certificate authority.
func authorityAccess() AccessTable {
	const authority = "/roost.wire.Authority/"
	return AccessTable{
		authority + "Greet":   {Anonymous},
		authority + "Join":    {Anonymous}, // the authority checks that the caller has a token
		authority + "Renew":   {Collector, Negotiator, Schedd, Startd, CheckpointServer, Accountant},
		authority + "Leave":   {Collector, Negotiator, Schedd, Startd, Pilot, CheckpointServer, Accountant},
		authority + "Revoked": {Collector, Negotiator, Schedd, Startd, Pilot, Guest, CheckpointServer, Accountant},

		authority + "MakePilotToken": {Schedd}, // for pilots that run tasks of its own users only

		authority + "AcceptOffer":  {Anonymous}, // the authority checks that the caller has the secret of an offer
		authority + "VouchGuest":   {Schedd},    // for its own key
		authority + "CertifyGuest": {Anonymous}, // the authority checks the signature of the guest's authority
		// The role is root's and the daemons' user's on the authority's own host, and no
		// peer's over the network; the authority checks that.
		authority + "MakeToken":   {Authority},
		authority + "RemoveToken": {Authority},
		authority + "Members":     {Authority},
		authority + "Revoke":      {Authority},
		authority + "OfferPeer":   {Authority},
		authority + "SaveHost":    {Authority},
		authority + "ListPeers":   {Authority},
		authority + "RevokePeer":  {Authority},
	}
}

// Allows reports whether p may call method.
func (t AccessTable) Allows(p Peer, method string) bool {
	for _, role := range t[method] {
		if p.Plays(role) {
			return true
		}
	}
	return false
}
