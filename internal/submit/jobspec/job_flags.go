package jobspec

// JobFlags are the flags of a command that describe a job. Texts have the form of a job
// file; empty means unset.
type JobFlags struct {
	Name         string // empty: the program's name
	Directory    string
	CPUs         string // "1.5" or "500m"
	Memory       string // "4GiB"
	Disk         string
	GPUs         int
	GPUMemory    string // "10GiB", of each GPU
	AppClass     string // "batch" or "stream"
	Walltime     string
	Band         string
	Priority     int
	Group        string
	Requirements string // a ClassAd expression
	Rank         string
	Count        int // 0: one task that is not an array
	Retries      int
	MaxRunning   int
	Stdin        string
	Stdout       string
	Stderr       string
	JoinOutput   bool
	Transfer     string
	Inputs       []string
	Outputs      []string
	Environment  []string // "NAME=value"
	GetEnv       bool     // copy the whole environment
	Labels       map[string]string
	Notice       string
	Lease        string
	StartAfter   string
	DependsOn    []string // "123.host" or "afterany:123.host"
	Hold         bool
}
