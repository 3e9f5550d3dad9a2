package console

// Act is a button that changes something: its own form, which works without script.
type Act struct {
	Label   string
	Sent    []Hidden // what the form says
	Primary bool
	Danger  bool
	Confirm *Confirm // what is asked before; nil: the button does it at once
}

// Confirm is what somebody reads, and may have to type, before something is done.
type Confirm struct {
	Title  string
	Lost   []CountPill // what will be changed, the dangerous first
	Why    string
	Expect string // what has to be typed; empty: nothing
	Reason string // what a field for a reason is called; empty: there is none
	Button string
}
