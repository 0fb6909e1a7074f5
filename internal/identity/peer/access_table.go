package peer

// AccessTable says which roles may call which method.
type AccessTable map[string][]Role

// MethodAccess is the table of all services. A method that is not in it is denied to
// everybody.
func MethodAccess() AccessTable {
	const (
		schedd     = "/roost.wire.Schedd/"
		peerSchedd = "/roost.wire.Neighbour/"
		collector  = "/roost.wire.Collector/"
		negotiator = "/roost.wire.Negotiator/"
		startd     = "/roost.wire.Startd/"
		replica    = "/roost.wire.Replica/"
		images     = "/roost.wire.CheckpointServer/"
		guard      = "/roost.wire.Guard/"
		authority  = "/roost.wire.Authority/"
	)
	return AccessTable{
		schedd + "Submit":         {User},
		schedd + "SubmitParts":    {User},
		schedd + "KeepScript":     {User},
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
		schedd + "CheckpointCell": {User}, // what is in it everybody may read otherwise

		schedd + "QueryPool":  {User},
		schedd + "LoginToken": {User},      // and who is on the schedd's host: the schedd looks
		schedd + "Login":      {Anonymous}, // and who holds a token: likewise
		schedd + "Logins":     {User},
		schedd + "Logout":     {User},

		// who is told what is nobody's secret; to act on a job a schedd has no right that
		// a user has
		peerSchedd + "Query":  {Schedd},
		peerSchedd + "Why":    {Schedd},
		peerSchedd + "Events": {Schedd},
		peerSchedd + "Act":    {Schedd}, // and for whom it acts: the schedd looks whether that user may

		collector + "Advertise": {Schedd, Startd, Negotiator},
		collector + "Watch":     {Negotiator, Schedd},
		collector + "Query":     {Schedd, Startd, Negotiator, Collector},

		negotiator + "Negotiate":      {Schedd},
		negotiator + "Watch":          {Schedd, Negotiator},
		negotiator + "Cell":           {Schedd, Negotiator}, // what a user may change is in the ledger
		negotiator + "CheckpointCell": {Schedd, Negotiator},

		replica + "Traffic": {Negotiator},
		replica + "Hello":   {Negotiator},
		replica + "Status":  {Negotiator}, // as all who can read the key of a central manager
		replica + "Add":     {Negotiator},
		replica + "Remove":  {Negotiator},

		startd + "Session":    {Schedd},
		startd + "Put":        {Schedd},
		startd + "Fetch":      {Schedd},
		startd + "Tail":       {Schedd},
		startd + "FetchImage": {Schedd},
		startd + "PutImage":   {Schedd},
		startd + "Shell":      {Schedd},
		startd + "Reach":      {Schedd},

		guard + "Watch":  {Startd}, // on this host: the guard has a unix socket only
		guard + "Pause":  {User},   // and that one who sits at the machine: the guard looks; so the next
		guard + "Resume": {User},
		guard + "Mine":   {User},

		guard + "Present": {User}, // who has a session on this machine: the guard looks

		authority + "Greet":   {Anonymous},
		authority + "Join":    {Anonymous}, // and who holds a token: the authority looks
		authority + "Renew":   {Collector, Negotiator, Schedd, Startd, CheckpointServer},
		authority + "Leave":   {Collector, Negotiator, Schedd, Startd, CheckpointServer},
		authority + "Revoked": {Collector, Negotiator, Schedd, Startd, CheckpointServer},
		// which on its own host are root and the daemons' user, and over the network
		// nobody: the authority looks
		authority + "MakeToken":   {Authority},
		authority + "RemoveToken": {Authority},
		authority + "Members":     {Authority},
		authority + "Revoke":      {Authority},

		images + "Put":    {Startd, Schedd},
		images + "Get":    {Startd, Schedd},
		images + "Remove": {Schedd}, // and that one whose it is: the server looks
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
