package scheddapi

import "context"

// schedd begins the name of each method of the service Schedd in roost.proto.
const schedd = "/roost.wire.Schedd/"

// ScheddClient makes the calls of the service Schedd.
type ScheddClient struct{ conn Conn }

// NewScheddClient returns a client with that connection.
func NewScheddClient(conn Conn) *ScheddClient { return &ScheddClient{conn} }

// Submit is the method of that name.
func (c *ScheddClient) Submit(ctx context.Context, req *SubmitRequest) (*SubmitReply, error) {
	return invoke[SubmitReply](ctx, c.conn, "Submit", req)
}

// SubmitParts is the method of that name.
func (c *ScheddClient) SubmitParts(ctx context.Context) (Sender[SubmitPart, SubmitReply], error) {
	s, err := c.conn.NewStream(ctx, schedd+"SubmitParts", ManyRequests)
	return Sender[SubmitPart, SubmitReply]{s}, err
}

// KeepScript is the method of that name.
func (c *ScheddClient) KeepScript(ctx context.Context) (Sender[ScriptChunk, ScriptReply], error) {
	s, err := c.conn.NewStream(ctx, schedd+"KeepScript", ManyRequests)
	return Sender[ScriptChunk, ScriptReply]{s}, err
}

// PutBlob is the method of that name.
func (c *ScheddClient) PutBlob(ctx context.Context) (Exchange[BlobPart, BlobMissing], error) {
	s, err := c.conn.NewStream(ctx, schedd+"PutBlob", TwoWay)
	return Exchange[BlobPart, BlobMissing]{s}, err
}

// ListBlobs is the method of that name.
func (c *ScheddClient) ListBlobs(ctx context.Context, req *BlobRequest) (*BlobList, error) {
	return invoke[BlobList](ctx, c.conn, "ListBlobs", req)
}

// RemoveBlob is the method of that name.
func (c *ScheddClient) RemoveBlob(ctx context.Context, req *BlobRequest) (*BlobMissing, error) {
	return invoke[BlobMissing](ctx, c.conn, "RemoveBlob", req)
}

// SetPackage is the method of that name.
func (c *ScheddClient) SetPackage(ctx context.Context, req *PackageChange) (*PackageVersion, error) {
	return invoke[PackageVersion](ctx, c.conn, "SetPackage", req)
}

// ListPackages is the method of that name.
func (c *ScheddClient) ListPackages(ctx context.Context, req *PackageQuery) (*PackageList, error) {
	return invoke[PackageList](ctx, c.conn, "ListPackages", req)
}

// ListFlowNodes is the method of that name.
func (c *ScheddClient) ListFlowNodes(ctx context.Context, req *FlowNodesRequest) (Receiver[FlowNodes], error) {
	return query[FlowNodes](ctx, c.conn, "ListFlowNodes", req)
}

// Query is the method of that name.
func (c *ScheddClient) Query(ctx context.Context, req *QueryRequest) (Receiver[JobStatus], error) {
	return query[JobStatus](ctx, c.conn, "Query", req)
}

// Act is the method of that name.
func (c *ScheddClient) Act(ctx context.Context, req *ActRequest) (*ActReply, error) {
	return invoke[ActReply](ctx, c.conn, "Act", req)
}

// Watch is the method of that name.
func (c *ScheddClient) Watch(ctx context.Context, req *WatchRequest) (Receiver[WatchEvent], error) {
	return query[WatchEvent](ctx, c.conn, "Watch", req)
}

// Logs is the method of that name.
func (c *ScheddClient) Logs(ctx context.Context, req *LogsRequest) (Receiver[LogChunk], error) {
	return query[LogChunk](ctx, c.conn, "Logs", req)
}

// Why is the method of that name.
func (c *ScheddClient) Why(ctx context.Context, req *WhyRequest) (*WhyReply, error) {
	return invoke[WhyReply](ctx, c.conn, "Why", req)
}

// Accounting is the method of that name.
func (c *ScheddClient) Accounting(ctx context.Context, req *AccountingQuery) (Receiver[AccountingPiece], error) {
	return query[AccountingPiece](ctx, c.conn, "Accounting", req)
}

// ChangeAccounts is the method of that name.
func (c *ScheddClient) ChangeAccounts(ctx context.Context, req *AccountingChange) (*AccountingResult, error) {
	return invoke[AccountingResult](ctx, c.conn, "ChangeAccounts", req)
}

// Events is the method of that name.
func (c *ScheddClient) Events(ctx context.Context, req *EventsRequest) (Receiver[JobEvent], error) {
	return query[JobEvent](ctx, c.conn, "Events", req)
}

// Ads is the method of that name.
func (c *ScheddClient) Ads(ctx context.Context, req *AdQuery) (Receiver[AdText], error) {
	return query[AdText](ctx, c.conn, "Ads", req)
}

// Names is the method of that name.
func (c *ScheddClient) Names(ctx context.Context, req *NamesQuery) (Receiver[NamesUpdate], error) {
	return query[NamesUpdate](ctx, c.conn, "Names", req)
}

// Health is the method of that name.
func (c *ScheddClient) Health(ctx context.Context, req *HealthRequest) (*HealthReply, error) {
	return invoke[HealthReply](ctx, c.conn, "Health", req)
}

// Shell is the method of that name.
func (c *ScheddClient) Shell(ctx context.Context) (Exchange[ShellInput, ShellOutput], error) {
	s, err := c.conn.NewStream(ctx, schedd+"Shell", TwoWay)
	return Exchange[ShellInput, ShellOutput]{s}, err
}

// Cell is the method of that name.
func (c *ScheddClient) Cell(ctx context.Context, req *CellRequest) (*CellReply, error) {
	return invoke[CellReply](ctx, c.conn, "Cell", req)
}

// CheckpointCell is the method of that name.
func (c *ScheddClient) CheckpointCell(ctx context.Context, req *CheckpointCellRequest) (Receiver[CheckpointPiece],
	error) {
	return query[CheckpointPiece](ctx, c.conn, "CheckpointCell", req)
}

// QueryPool is the method of that name.
func (c *ScheddClient) QueryPool(ctx context.Context, req *PoolQuery) (Receiver[PoolRow], error) {
	return query[PoolRow](ctx, c.conn, "QueryPool", req)
}

// LoginToken is the method of that name.
func (c *ScheddClient) LoginToken(ctx context.Context, req *LoginTokenRequest) (*LoginTokenReply, error) {
	return invoke[LoginTokenReply](ctx, c.conn, "LoginToken", req)
}

// PilotToken is the method of that name.
func (c *ScheddClient) PilotToken(ctx context.Context, req *PilotTokenQuery) (*PilotTokenReply, error) {
	return invoke[PilotTokenReply](ctx, c.conn, "PilotToken", req)
}

// Login is the method of that name.
func (c *ScheddClient) Login(ctx context.Context, req *LoginRequest) (*LoginReply, error) {
	return invoke[LoginReply](ctx, c.conn, "Login", req)
}

// Logins is the method of that name.
func (c *ScheddClient) Logins(ctx context.Context, req *LoginsRequest) (*LoginsReply, error) {
	return invoke[LoginsReply](ctx, c.conn, "Logins", req)
}

// Logout is the method of that name.
func (c *ScheddClient) Logout(ctx context.Context, req *LogoutRequest) (*LoginInfo, error) {
	return invoke[LoginInfo](ctx, c.conn, "Logout", req)
}
