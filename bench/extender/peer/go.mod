module bench/extender/peer

go 1.26.0
