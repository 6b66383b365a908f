// A forest over codes of one byte: what prediction on many rows runs.
#pragma once

#include "cpu/coded_tree.h"
#include "cpu/feature_codes.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace torchgbdt {

static_assert(kCodedRows <= kSearchedValues, "a block's codes are found by one search");

class CodedForest {
  public:
    // Checks the trees. None where a feature has too many thresholds for codes.
    static std::optional<CodedForest> make(const ForestView& forest, const MatrixView& matrix);

    const CodedTree& tree(std::int64_t index) const {
        return trees_[static_cast<std::size_t>(index)];
    }

    // Reads the codes of a block of at most kCodedRows rows.
    void load(std::int64_t begin, std::int64_t count, CodedRows& rows) const;

  private:
    CodedForest() = default;
    std::int64_t n_columns() const { return static_cast<std::int64_t>(features_.size()); }

    std::vector<FeatureCodes> features_;
    std::vector<CodedTree> trees_;
    int n_slots_ = 1;
};

}  // namespace torchgbdt
