package console

// NewView is the form that asks for a new cluster, or for a change of one.
type NewView struct {
	Change    string // create or update
	Cluster   string // that is changed
	Templates []TemplateChoice
	Template  string // that is chosen; empty: it is to be chosen first
	Sent      []Hidden
	Head      []Field // name, project, version, provider and the like
	Variables []Field
	Rules     []string // in words
	Alerts    []Alert
	Document  string // as it would be
	Place     string // where it would be
	Faults    []FaultRow
}

func (NewView) page() string { return "new" }

// TemplateChoice is a template that a cluster can be made from.
type TemplateChoice struct {
	Name, Href, Version string
	Why                 string // it cannot be used; empty: it can
}

// Field is something to be typed or chosen.
type Field struct {
	Name, Label string
	Kind        string // text, number, select or area
	Value       string
	Placeholder string // what it is without a value
	Help        string
	Limits      string // in words
	Options     []Choice
	List        []string // of which one is usual: others may be typed
	Required    bool
	Whole       bool   // another value makes another form
	Fault       string // what is wrong with it
}

// Choice is an option of a field.
type Choice struct {
	Value, Label string
	On           bool
}

// FaultRow is what is wrong, and where.
type FaultRow struct{ Place, Message, Hint string }

// KeptView keeps what somebody has typed while they sign in again.
type KeptView struct {
	Action string
	Values []Hidden
}

func (KeptView) page() string { return "kept" }
