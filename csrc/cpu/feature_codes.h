// Reading features of X as codes: what bin_features writes and what coded forests compare.
#pragma once

#include "cpu/cut_search.h"
#include "cpu/matrix_view.h"

#include <array>
#include <cstdint>
#include <variant>

namespace torchgbdt {

// One feature of X and its cuts. Values are compared as float32 where X's type fits into it, which
// is faster, and as float64 otherwise; the codes are the same.
class FeatureCodes {
  public:
    FeatureCodes(const MatrixView& matrix, std::int64_t feature, const double* cuts,
                 std::int64_t n_cuts, std::uint8_t missing_code)
        : matrix_(&matrix),
          feature_(feature),
          search_(fits_float32(matrix.type) ? Search(CutSearch<float>(cuts, n_cuts, missing_code))
                                            : CutSearch<double>(cuts, n_cuts, missing_code)) {}

    // codes[i] = code of row begin + i, or of rows[begin + i] if rows are given;
    // count <= kSearchedValues.
    void find(const std::int64_t* rows, std::int64_t begin, std::int64_t count,
              std::uint8_t* codes) const {
        std::visit([&](const auto& search) { find_by(search, rows, begin, count, codes); },
                   search_);
    }

  private:
    using Search = std::variant<CutSearch<float>, CutSearch<double>>;

    template <typename Number>
    void find_by(const CutSearch<Number>& search, const std::int64_t* rows, std::int64_t begin,
                 std::int64_t count, std::uint8_t* codes) const {
        std::array<Number, kSearchedValues> values;
        load_feature(*matrix_, feature_, rows, begin, count, values.data(), 1);
        search.find_codes(values.data(), count, codes);
    }

    const MatrixView* matrix_;
    std::int64_t feature_;
    Search search_;
};

}  // namespace torchgbdt
