module bolide/contenders/go

go 1.25.0

require (
	github.com/gorilla/websocket v1.5.3
	golang.org/x/net v0.50.0
	golang.org/x/sys v0.41.0
)

require golang.org/x/text v0.34.0 // indirect
