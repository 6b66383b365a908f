// Signals while a kernel runs: they end the dispatch, not the process.
#pragma once

// From its construction to its end, a fault of this thread, or `seconds` of processor time, is a
// failure of the dispatch. Outside, signals go where they went before.
class FaultGuard {
  public:
    explicit FaultGuard(double seconds);
    ~FaultGuard();
    FaultGuard(const FaultGuard&) = delete;
    FaultGuard& operator=(const FaultGuard&) = delete;
};
