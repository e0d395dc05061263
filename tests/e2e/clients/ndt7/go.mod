// The reference client of ndt7, with everything that it is built from, pinned.
module bolide.invalid/ndt7-client

go 1.25.5

tool github.com/m-lab/ndt7-client-go/cmd/ndt7-client

require (
	github.com/araddon/dateparse v0.0.0-20210429162001-6b43995a97de // indirect
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/gorilla/websocket v1.5.4-0.20250319132907-e064f32e3674 // indirect
	github.com/m-lab/go v0.1.76 // indirect
	github.com/m-lab/locate v0.19.0 // indirect
	github.com/m-lab/ndt-server v0.25.0 // indirect
	github.com/m-lab/ndt7-client-go v0.10.1 // indirect
	github.com/m-lab/tcp-info v1.9.0 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/prometheus/client_golang v1.23.2 // indirect
	github.com/prometheus/client_model v0.6.2 // indirect
	github.com/prometheus/common v0.67.5 // indirect
	github.com/prometheus/procfs v0.19.2 // indirect
	go.yaml.in/yaml/v2 v2.4.3 // indirect
	golang.org/x/net v0.49.0 // indirect
	golang.org/x/sys v0.40.0 // indirect
	google.golang.org/protobuf v1.36.11 // indirect
)
